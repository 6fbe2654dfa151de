/** Patterns of events: their steps, and the partial matches that have come to each. */

import { useMemo, useState } from "preact/hooks";
import * as api from "../api";
import { cell, count } from "../format";
import { Empty, FaultBox, LongTable, State, useLoaded } from "../parts/common";
import { Box, Drawing } from "../parts/drawing";
import type { Graph, PatternSteps } from "../types";

export function Patterns() {
  const { value, fault } = useLoaded(api.patterns, [], 2000);
  if (fault) return <FaultBox fault={fault} />;
  if (!value) return <Empty>Loading…</Empty>;
  return (
    <>
      <h1>Patterns</h1>
      {value.patterns.length === 0 ? <Empty>No pattern is declared. Add one with <code>tr.pattern(…)</code>.</Empty> : null}
      {value.patterns.length ? (
        <LongTable
          name="Patterns"
          columns={["pattern", "state", "reads", "match", "watermark", "late", "dead"]}
          numbers={new Set(["late", "dead"])}
          items={value.patterns}
          identify={(one) => one.name}
          cells={(one) => (
            <>
              <td><a href={`#/patterns/${encodeURIComponent(one.name)}`}>{one.name}</a></td>
              <td class={one.error ? "bad" : ""}>{one.error?.error ?? one.state}</td>
              <td>{one.reads}</td>
              <td><code>{one.match}</code></td>
              <td>{one.watermark}</td>
              <td class="number">{count(one.late)}</td>
              <td class="number">{count(one.dead)}</td>
            </>
          )}
        />
      ) : null}
    </>
  );
}

export function PatternPage({ name }: { name: string }) {
  const { value: all } = useLoaded(api.patterns, [], 2000);
  const about = all?.patterns.find((one) => one.name === name);
  const [key, setKey] = useState<string[]>([]);
  const { value, fault } = useLoaded(() => api.pattern(name, key), [name, key.join("\0")], 2000);
  const { value: words } = useLoaded(() => api.explainPattern(name).catch(() => null), [name]);
  return (
    <>
      <h1>{name} {about ? <State state={about.state} /> : null}</h1>
      {about ? <p class="note"><code>{about.match}</code> over {about.reads}, by {about.key.join(", ")}</p> : null}
      {about?.error ? <FaultBox fault={about.error} /> : null}
      {fault ? <FaultBox fault={fault} /> : null}
      {value ? <Steps found={value} /> : <Empty>Loading…</Empty>}
      {value ? (
        <dl class="facts">
          <div><dt>matches</dt><dd data-live="matches">{count(value.matches)}</dd></div>
          <div><dt>timed out</dt><dd>{count(value.timeouts)}</dd></div>
          <div><dt>taken back</dt><dd>{count(value.retracted)}</dd></div>
          <div><dt>open</dt><dd>{count(value.open)}</dd></div>
          <div><dt>oldest open</dt><dd>{value.oldest_open ?? "none"}</dd></div>
          <div><dt>watermark</dt><dd>{value.watermark ?? "none"}</dd></div>
          <div><dt>rows ahead of it</dt><dd>{count(value.queued)}</dd></div>
        </dl>
      ) : null}
      {about ? <OfKey columns={about.key} choose={setKey} /> : null}
      {key.length && value?.partials ? <Partials found={value} /> : null}
      <p><a href={`#/topics/${encodeURIComponent(name)}`}>Its last matches</a></p>
      {words ? <details><summary>How it is kept</summary><pre>{words.text}</pre></details> : null}
    </>
  );
}

function Steps({ found }: { found: PatternSteps }) {
  const graph = useMemo<Graph>(() => ({
    nodes: found.steps.map((step) => ({ name: step.id, kind: "view", label: `${found.name}/${step.id}` })),
    edges: found.edges.filter(([from, to]) => from !== to).map(([from, to]) => ({ from, to })),
  }), [found.name, JSON.stringify(found.edges)]);
  const open = new Map(found.steps.map((step) => [step.id, step.open]));
  const again = new Set(found.edges.filter(([from, to]) => from === to).map(([from]) => from));
  return (
    <Drawing
      graph={graph}
      label={`Steps of ${found.name}`}
      node={(placed) => {
        const step = placed.node.name;
        return <Box placed={placed} name={again.has(step) ? `${step}, repeated` : step} figure={`${count(open.get(step) ?? 0)} open`} hover={step} />;
      }}
      edge={(edge) => <path d={edge.path} class="edge" />}
    />
  );
}

function OfKey({ columns, choose }: { columns: string[]; choose: (key: string[]) => void }) {
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const given = new FormData(event.currentTarget);
        choose(columns.map((column) => String(given.get(column) ?? "")));
      }}
    >
      {columns.map((column) => <label key={column}>{column} <input name={column} maxLength={200} required /></label>)}
      <button type="submit">Show its partial matches</button>
    </form>
  );
}

function Partials({ found }: { found: PatternSteps }) {
  const partials = found.partials ?? [];
  if (!partials.length) return <Empty>Nothing of this key waits.</Empty>;
  return (
    <>
      {partials.map((partial) => {
        const columns = Object.keys(partial.rows[0]?.row ?? {});
        return (
          <section key={partial.began_at}>
            <h2>Since {partial.began_at}, at {partial.reached}</h2>
            <table aria-label={`Rows since ${partial.began_at}`}>
              <thead><tr><th>variable</th>{columns.map((column) => <th key={column}>{column}</th>)}</tr></thead>
              <tbody>
                {partial.rows.map((row) => (
                  <tr key={row.at}><td>{row.variable}</td>{columns.map((column) => <td key={column}>{cell(row.row[column])}</td>)}</tr>
                ))}
              </tbody>
            </table>
          </section>
        );
      })}
    </>
  );
}
