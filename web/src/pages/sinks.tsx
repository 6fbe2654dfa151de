/** Copies: how fresh they are, whether they equal the log, and what they refused. */

import * as api from "../api";
import { age, cell, count } from "../format";
import { live } from "../live";
import { Act, Chart, Empty, FaultBox, LongTable, State, Table, useLoaded } from "../parts/common";
import { DeadLetters } from "../parts/letters";
import type { Part, Verification } from "../types";

const part = (name: string): Part | undefined => live.value?.parts.find((candidate) => candidate.kind === "sink" && candidate.name === name);

export function Sinks() {
  const { value, fault } = useLoaded(api.sinks, []);
  if (fault) return <FaultBox fault={fault} />;
  if (!value) return <Empty>Loading…</Empty>;
  if (value.sinks.length === 0) return <Empty>No copy is kept. Add one: <code>tr.view(…, to=sinks.SQLite(…))</code>.</Empty>;
  return (
    <>
    <h1>Copies</h1>
    <LongTable
      name="Sinks"
      columns={["copy", "of", "in", "state", "fresh", "refused"]}
      numbers={new Set(["fresh", "refused"])}
      items={value.sinks}
      identify={(sink) => sink.name}
      cells={(sink) => (
        <>
          <td><a href={`#/sinks/${encodeURIComponent(sink.name)}`}>{sink.name}</a></td>
          <td><a href={`#/views/${encodeURIComponent(sink.of)}`}>{sink.of}</a></td>
          <td>{sink.to}</td>
          <td><State state={part(sink.name)?.state ?? "not started"} /></td>
          <td class="number" data-live={`fresh:${sink.name}`}>{age(part(sink.name)?.freshness_ms)}</td>
          <td class="number">{count(part(sink.name)?.["dead_letters"] as number | undefined)}</td>
        </>
      )}
    />
    </>
  );
}

export function SinkPage({ name }: { name: string }) {
  const { value, fault } = useLoaded(api.sinks, [name]);
  if (fault) return <FaultBox fault={fault} />;
  if (!value) return <Empty>Loading…</Empty>;
  const sink = value.sinks.find((candidate) => candidate.name === name);
  if (!sink) return <Empty>No copy of that name is declared.</Empty>;
  const now = part(name);
  return (
    <>
      <h1>{name} <State state={now?.state ?? "not started"} /></h1>
      <p>Keeps <a href={`#/views/${encodeURIComponent(sink.of)}`}>{sink.of}</a> in step in {sink.to}.</p>
      {now?.error ? <FaultBox fault={now.error} /> : null}
      <Chart series={`part:sink-${name}`} label="from tick to copy" unit={age} />
      <p class="note">It stands at {position(now?.["position"])}.</p>
      <h2>Is it right?</h2>
      <p class="note">Compares every row with the log at one position; the copy goes on meanwhile.</p>
      <Act label="Compare" work={() => api.verify(name, false)} told={(found) => <Found found={found} />} />
      <DeadLetters name={name} retriable />
    </>
  );
}

/** Where a copy stands, as it says itself. */
function position(told: unknown) {
  if (typeof told !== "object" || told === null) return told ? <code>{cell(told)}</code> : "no tick yet";
  const { tick, offsets } = told as { tick?: number; offsets?: Record<string, number> };
  const places = Object.entries(offsets ?? {}).map(([partition, offset]) => `${partition}:${offset}`).join(", ");
  return <><code>tick {tick ?? "–"}</code>{places ? <>, offsets <code>{places}</code></> : null}</>;
}

function Found({ found }: { found: Verification }) {
  if (found.in_step) return <p class="good">In step: {count(found.rows)} rows are equal{found.skipped ? `, ${count(found.skipped)} moved meanwhile` : ""}.</p>;
  return (
    <>
      <p class="bad">{count(found.differences.length)} of {count(found.rows)} rows differ.</p>
      <Table name="Differences" rows={found.differences.map((one) => ({ key: one.key, "in the log": one.expected, "in the copy": one.found }))} />
      <Act label="Repair" sure="Write these rows as the log has them?" work={() => api.verify(found.sink, true)} told={(done) => `${done.repaired} rows written.`} />
    </>
  );
}
