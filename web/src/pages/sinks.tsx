/** Sinks: how late they are, whether they equal the log, and what they refused. */

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
  if (value.sinks.length === 0) return <Empty>No sink is declared. Add one: <code>tr.view(…, to=sinks.SQLite(…))</code>.</Empty>;
  return (
    <>
    <h1>Sinks</h1>
    <LongTable
      name="Sinks"
      columns={["sink", "state", "latency", "dead letters", "view", "target"]}
      numbers={new Set(["latency", "dead letters"])}
      items={value.sinks}
      identify={(sink) => sink.name}
      values={(sink, column) => ({ sink: sink.name, state: part(sink.name)?.state, latency: part(sink.name)?.freshness_ms, "dead letters": part(sink.name)?.["dead_letters"], view: sink.of, target: sink.to })[column]}
      cells={(sink) => (
        <>
          <td><a href={`#/sinks/${encodeURIComponent(sink.name)}`}>{sink.name}</a></td>
          <td><State state={part(sink.name)?.state ?? "not started"} /></td>
          <td class="number" data-live={`fresh:${sink.name}`}>{age(part(sink.name)?.freshness_ms)}</td>
          <td class="number">{count(part(sink.name)?.["dead_letters"] as number | undefined)}</td>
          <td><a href={`#/views/${encodeURIComponent(sink.of)}`}>{sink.of}</a></td>
          <td>{sink.to}</td>
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
  if (!sink) return <Empty>No sink of that name is declared.</Empty>;
  const now = part(name);
  return (
    <>
      <h1>{name} <State state={now?.state ?? "not started"} /></h1>
      <p>Keeps <a href={`#/views/${encodeURIComponent(sink.of)}`}>{sink.of}</a> in step in {sink.to}.</p>
      {now?.error ? <FaultBox fault={now.error} /> : null}
      <Chart series={`part:sink-${name}`} label="from tick to sink" unit={age} />
      <p class="note">Position: {position(now?.["position"])}.</p>
      <h2>Is it right?</h2>
      <p class="note">Compares every row with the log at one position; the sink goes on meanwhile.</p>
      <Act label="Compare" work={() => api.verify(name, false)} told={(found) => <Found found={found} />} />
      <DeadLetters name={name} retriable />
    </>
  );
}

/** How far a sink is, as it says itself. */
function position(text: unknown) {
  const told = parsed(text);
  if (typeof told !== "object" || told === null) return told ? <code>{cell(told)}</code> : "no tick yet";
  const { tick, offsets } = told as { tick?: number; offsets?: Record<string, number> };
  const places = Object.entries(offsets ?? {}).map(([partition, offset]) => `${partition}:${offset}`).join(", ");
  return <><code>tick {tick ?? "–"}</code>{places ? <>, offsets <code>{places}</code></> : null}</>;
}

/** The position of a sink is JSON in a text. */
function parsed(text: unknown): unknown {
  if (typeof text !== "string") return text;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

function Found({ found }: { found: Verification }) {
  if (found.in_step) return <p class="good">In step: {count(found.rows)} rows are equal{found.skipped ? `, ${count(found.skipped)} moved meanwhile` : ""}.</p>;
  return (
    <>
      <p class="bad">{count(found.differences.length)} of {count(found.rows)} rows differ.</p>
      <Table name="Differences" rows={found.differences.map((one) => ({ key: one.key, "in the log": one.expected, "in the sink": one.found }))} />
      <Act label="Repair" sure="Write these rows as the log has them?" work={() => api.verify(found.sink, true)} told={(done) => `${done.repaired} rows written.`} />
    </>
  );
}
