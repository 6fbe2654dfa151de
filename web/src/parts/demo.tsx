/** The demo's plugs, and the database and the view side by side. */

import { useState } from "preact/hooks";
import * as api from "../api";
import { ApiError } from "../api";
import { count } from "../format";
import { useLoaded } from "./common";

const PLUGS = [
  ["refund", "Refund an order"],
  ["pause", "Stop the pipeline for 20 s"],
  ["kill/pipelines", "Kill the pipeline"],
  ["kill/broker", "Kill the broker"],
  ["kill/source", "Kill the capture"],
] as const;

export function Demo() {
  const [did, setDid] = useState("");
  const { value } = useLoaded(api.proof, [], 3000);
  const pull = (plug: string) =>
    api.pull(plug).then(
      (answer) => setDid(answer.did),
      (error: unknown) => setDid(error instanceof ApiError ? error.message : String(error)),
    );
  const same = value?.view && value.view.orders === value.database.orders;
  return (
    <section class="card demo" aria-label="Pull a plug">
      <h2>Pull a plug</h2>
      <p class="plugs">
        {PLUGS.map(([plug, label]) => (
          <button type="button" key={plug} onClick={() => void pull(plug)}>{label}</button>
        ))}
      </p>
      <p role="log">{did}</p>
      {value ? (
        <p>
          Open orders in the database <b data-live="database">{count(value.database.orders)}</b> worth {value.database.value}; in the view{" "}
          {value.view ? (
            <><b data-live="view">{count(value.view.orders)}</b> worth {value.view.value}, caught up in {value.ms} ms{same ? ": equal" : ": the shop went on selling meanwhile"}.</>
          ) : (
            <em>{value.waiting}</em>
          )}
        </p>
      ) : null}
    </section>
  );
}
