/** Sources: where they stand, what the database keeps for them; and how tables changed. */

import * as api from "../api";
import { age, bytes, cell, count } from "../format";
import { live } from "../live";
import { Chart, Empty, FaultBox, LongTable, State, useLoaded } from "../parts/common";

const SHOWN = new Set(["name", "kind", "project", "state", "error", "at", "freshness_ms", "lag", "wal_retained_bytes", "wal_state", "pid"]);

const empty = (found: unknown) => found === null || (typeof found === "object" && Object.keys(found as object).length === 0);

export function Sources() {
  const state = live.value;
  if (!state) return <Empty>Waiting for the first figures…</Empty>;
  const sources = state.parts.filter((part) => part.kind === "source");
  if (sources.length === 0) return <Empty>No source runs. Declare one: <code>sources.Postgres(…)</code> or <code>sources.SQLite(…)</code>.</Empty>;
  return (
    <>
    <h1>Sources</h1>
    <LongTable
      name="Sources"
      columns={["source", "state", "latency", "lag", "retained WAL", "position"]}
      numbers={new Set(["latency", "lag", "retained WAL"])}
      items={sources}
      identify={(part) => part.name}
      values={(part, column) => ({ source: part.name, state: part.state, latency: part.freshness_ms, lag: part.lag, "retained WAL": part["wal_retained_bytes"], position: part["position"] })[column]}
      cells={(part) => (
        <>
          <td><a href={`#/sources/${encodeURIComponent(part.name)}`}>{part.name}</a></td>
          <td><State state={part.state} /></td>
          <td class="number">{age(part.freshness_ms)}</td>
          <td class="number">{count(part.lag)}</td>
          <td class="number">{bytes(part["wal_retained_bytes"] as number | undefined)}</td>
          <td><code>{cell(part["position"])}</code></td>
        </>
      )}
    />
    </>
  );
}

export function SourcePage({ name }: { name: string }) {
  const { value: graph } = useLoaded(api.graph, [name]);
  const state = live.value;
  if (!state) return <Empty>Waiting for the first figures…</Empty>;
  const part = state.parts.find((candidate) => candidate.kind === "source" && candidate.name === name);
  if (!part) return <Empty>No source of that name runs.</Empty>;
  const tables = graph?.edges.filter((edge) => edge.from === `source:${name}`).map((edge) => edge.to) ?? [];
  const copying = (part["copying"] as string[] | undefined) ?? [];
  const wal = part["wal_retained_bytes"];
  return (
    <>
      <h1>{name} <State state={part.state} /></h1>
      {part.error ? <FaultBox fault={part.error} /> : null}
      <Chart series={`part:source-${name}`} label="from commit to the log" unit={age} />
      {typeof wal === "number" ? (
        <>
          <Chart series={`part:source-${name}:wal`} label={`WAL the database keeps for the slot (${String(part["wal_state"] ?? "ok")})`} unit={bytes} />
          <p class="note">It grows while capture does not run, and may fill the primary's disk: <code>tailrace source doctor {name}</code></p>
        </>
      ) : <p class="note">This source keeps no replication slot.</p>}
      {copying.length ? <p>Initial snapshot under way: {copying.join(", ")}</p> : null}
      <h2>Tables</h2>
      {tables.length ? <ul class="plain">{tables.map((table) => <li key={table}><a href={`#/topics/${encodeURIComponent(table)}`}>{table}</a></li>)}</ul> : <Empty>Tables are found when the source starts.</Empty>}
      <p><a href="#/schemas">How their columns changed</a></p>
      <dl class="settings">
        {Object.entries(part).filter(([fact, found]) => !SHOWN.has(fact) && !empty(found)).map(([fact, found]) => (
          <div key={fact}><dt>{fact.replaceAll("_", " ")}</dt><dd data-live={`source-${name}:${fact}`}>{cell(found)}</dd></div>
        ))}
      </dl>
    </>
  );
}

export function Schemas() {
  const { value, fault } = useLoaded(api.schemas, [], 30_000);
  if (fault) return <FaultBox fault={fault} />;
  if (!value) return <Empty>Loading…</Empty>;
  if (value.tables.length === 0) return <Empty>No source has described a table yet.</Empty>;
  return (
    <>
      <h1>Schemas</h1>
      {value.tables.map(({ table, versions }) => {
        const newest = versions.at(-1);
        return (
          <details key={table} open={versions.length > 1}>
            <summary><strong>{table}</strong> <span class="note">version {newest?.version}, {newest?.columns.length} columns, key {newest?.key.join(", ") || "none"}</span></summary>
            <ol class="versions">
              {versions.map((version) => (
                <li key={version.version} value={version.version}>
                  <code>{version.position}</code>
                  {version.changes.length ? <ul>{version.changes.map((change) => <li key={change} class={change.startsWith("+") ? "added" : change.startsWith("−") ? "dropped" : ""}>{change}</li>)}</ul> : <span class="note"> as first seen</span>}
                </li>
              ))}
            </ol>
            <LongTable name={`Columns of ${table}`} columns={["column", "type", "as", "null"]} items={newest?.columns ?? []} identify={(column) => column.name}
              cells={(column) => (<><td>{column.name}</td><td>{column.type}</td><td class="note">{column.spark}</td><td>{column.nullable ? "yes" : "no"}</td></>)} />
          </details>
        );
      })}
    </>
  );
}
