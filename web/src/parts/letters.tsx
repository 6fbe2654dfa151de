/** Records that could not be taken: look at them, try them again. */

import * as api from "../api";
import { pretty } from "../format";
import { Act, Empty, FaultBox, useLoaded } from "./common";

export function DeadLetters({ name, retriable, why }: { name: string; retriable: boolean; why?: string }) {
  const { value, fault } = useLoaded(() => api.letters(name), [name], 5000);
  return (
    <section aria-label="Dead letters">
      <h2>Dead letters{value?.total ? ` (${value.total})` : ""}</h2>
      {fault ? <FaultBox fault={fault} /> : null}
      {value && value.total === 0 ? <Empty>Nothing was set aside.</Empty> : null}
      <ol class="records">
        {value?.letters.map((letter) => (
          <li key={letter.record}>
            <details>
              <summary><code>{letter.record}</code> <span class="peek">{letter.reason}</span></summary>
              <pre>{typeof letter.content === "string" ? pretty(letter.content) : JSON.stringify(letter.content, null, 2)}</pre>
              {letter.stack ? <pre class="note">{letter.stack}</pre> : null}
            </details>
          </li>
        ))}
      </ol>
      {value?.total && retriable ? (
        <Act label="Try them again" sure="Write all of them once more?" work={() => api.retry(name)} told={(done) => `${done.retried} were taken this time.`} />
      ) : null}
      {value?.total && !retriable && why ? <p class="note">{why}</p> : null}
    </section>
  );
}
