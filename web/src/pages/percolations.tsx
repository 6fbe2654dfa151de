/** Stored queries: what each costs, and which match an event. */

import { useState } from "preact/hooks";
import * as api from "../api";
import { count } from "../format";
import { Empty, FaultBox, LongTable, State, useLoaded } from "../parts/common";
import type { Fault, PercolationTried } from "../types";

export function Percolations() {
  const { value, fault } = useLoaded(api.percolations, [], 2000);
  if (fault) return <FaultBox fault={fault} />;
  if (!value) return <Empty>Loading…</Empty>;
  return (
    <>
      <h1>Stored queries</h1>
      {value.percolations.length === 0 ? <Empty>No stored queries are declared. Add them with <code>tr.percolate(…)</code>.</Empty> : (
        <LongTable
          name="Stored queries"
          columns={["percolation", "state", "reads", "queries of", "tick", "dead"]}
          numbers={new Set(["tick", "dead"])}
          items={value.percolations}
          identify={(one) => one.name}
          cells={(one) => (
            <>
              <td><a href={`#/percolations/${encodeURIComponent(one.name)}`}>{one.name}</a></td>
              <td class={one.error ? "bad" : ""}>{one.error?.error ?? one.state}</td>
              <td>{one.reads}</td>
              <td>{one.queries_of}</td>
              <td class="number">{count(one.tick)}</td>
              <td class="number">{count(one.dead)}</td>
            </>
          )}
        />
      )}
    </>
  );
}

export function PercolationPage({ name }: { name: string }) {
  const { value: all } = useLoaded(api.percolations, [], 2000);
  const about = all?.percolations.find((one) => one.name === name);
  const { value, fault } = useLoaded(() => api.percolation(name), [name], 5000);
  return (
    <>
      <h1>{name} {about ? <State state={about.state} /> : null}</h1>
      {about ? <p class="note">queries of {about.queries_of} over {about.reads}: {[...about.text, ...about.fields].join(", ")}</p> : null}
      {about?.error ? <FaultBox fault={about.error} /> : null}
      <Try name={name} />
      {fault ? <FaultBox fault={fault} /> : null}
      {value ? (
        <>
          <p class="note">
            <span data-live="queries">{count(value.count)}</span> in force as of tick {count(value.tick)}, tried against the last {count(value.documents)} events; dearest first
          </p>
          <LongTable
            name="Queries"
            columns={["id", "query", "candidates", "matches", "µs", "since tick"]}
            numbers={new Set(["candidates", "matches", "µs", "since tick"])}
            items={value.queries}
            identify={(one) => String(one.query_id)}
            cells={(one) => (
              <>
                <td>{String(one.query_id)}</td>
                <td><code>{one.query}</code>{one.always ? <span class="note"> every event</span> : null}</td>
                <td class="number">{count(one.candidates)}</td>
                <td class="number">{count(one.matches)}</td>
                <td class="number">{one.micros}</td>
                <td class="number">{count(one.query_version)}</td>
              </>
            )}
          />
        </>
      ) : <Empty>Loading…</Empty>}
      <p><a href={`#/topics/${encodeURIComponent(name)}`}>Its last matches</a></p>
    </>
  );
}

/** Which queries match an event that somebody writes. */
function Try({ name }: { name: string }) {
  const [text, setText] = useState("{}");
  const [found, setFound] = useState<PercolationTried | null>(null);
  const [fault, setFault] = useState<Fault | null>(null);
  const go = async () => {
    setFault(null);
    setFound(null);
    let event: unknown;
    try {
      event = JSON.parse(text);
    } catch (reason) {
      setFault({ error: "the event is no JSON", detail: String(reason), hint: '{"title": "red boat"}', code: "usage" });
      return;
    }
    try {
      setFound(await api.tryEvent(name, event));
    } catch (reason) {
      if (!(reason instanceof api.ApiError)) throw reason;
      setFault(reason.fault);
    }
  };
  return (
    <section>
      <form onSubmit={(event) => { event.preventDefault(); void go(); }}>
        <label>Event <textarea rows={3} value={text} onInput={(event) => setText(event.currentTarget.value)} /></label>
        <button type="submit">Which queries match?</button>
      </form>
      {fault ? <FaultBox fault={fault} /> : null}
      {found && found.count === 0 ? <Empty>None of {count(found.queries)} queries matches.</Empty> : null}
      {found?.count ? (
        <table aria-label="Matches">
          <thead><tr><th>id</th><th>query</th><th>because of</th></tr></thead>
          <tbody>
            {found.matches.map((one) => (
              <tr key={String(one.query_id)}><td>{String(one.query_id)}</td><td><code>{one.query}</code></td><td>{one.because.join(", ")}</td></tr>
            ))}
          </tbody>
        </table>
      ) : null}
    </section>
  );
}
