/** Views: rows that update in place, how they are kept, what they were, and SQL over all. */

import { useEffect, useRef, useState } from "preact/hooks";
import * as api from "../api";
import { cell, columnsOf, compare, count, numbersOf } from "../format";
import { follow, live, viewFault } from "../live";
import { Empty, FaultBox, faultOf, LongTable, useLoaded } from "../parts/common";
import { ChartOf } from "../parts/chartof";
import { PastOf } from "../parts/past";
import { PlanOf } from "../parts/plan";
import { SqlBox } from "../parts/sqlbox";
import { applyEvent, changedCells, type ViewEvent } from "../rows";
import type { Fault, Row } from "../types";

const LIVE_ROWS = 500;
const MOST_LIVE = 5000;

export function Views() {
  const [wanted, setWanted] = useState("");
  const { value: graph, fault } = useLoaded(api.graph, []);
  const { value: about } = useLoaded(() => api.views().catch(() => null), [], 5000);
  if (fault) return <FaultBox fault={fault} />;
  const rows = new Map(about?.views.map((view) => [view.name, view]));
  const views = graph?.nodes.filter((node) => node.kind === "view") ?? [];
  const shown = views.filter((view) => view.name.includes(wanted));
  return (
    <>
      <h1>Views</h1>
      {graph && views.length === 0 ? <Empty>No view is declared. Add one with <code>tr.view(…)</code>.</Empty> : null}
      {views.length > 12 ? (
        <form class="filters" onSubmit={(event) => event.preventDefault()}>
          <label>Find <input type="search" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} /></label>
        </form>
      ) : null}
      {views.length ? (
        <LongTable
          name="Views"
          columns={["view", "rows", "key", "columns"]}
          numbers={new Set(["rows"])}
          items={shown}
          identify={(view) => view.name}
          cells={(view) => (
            <>
              <td><a href={`#/views/${encodeURIComponent(view.name)}`}>{view.name}</a></td>
              <td class="number" data-live={`count:${view.name}`}>{count(rows.get(view.name)?.rows)}</td>
              <td>{rows.get(view.name)?.key.join(", ")}</td>
              <td class="note">{rows.get(view.name)?.columns.map(([name]) => name).join(", ")}</td>
            </>
          )}
        />
      ) : null}
      <h2>SQL</h2>
      {graph ? <SqlBox first={views[0] ? `SELECT * FROM ${views[0].name} LIMIT 20` : ""} /> : null}
    </>
  );
}

export function ViewPage({ name }: { name: string }) {
  const { value: about } = useLoaded(() => api.views().then((found) => found.views.find((view) => view.name === name) ?? null, () => null), [name], 10_000);
  const { rows, changed, fault } = useRows(name, about === null ? null : about.rows > MOST_LIVE);
  const listed = rows ? [...rows.entries()].sort(([a], [b]) => byKey(a, b)) : [];
  const aside = viewFault(live.value, name);
  return (
    <>
      <h1>{name}</h1>
      {aside ? <><p class="bad">It shows what it last was and is tried again; the others go on.</p><FaultBox fault={aside} /></> : null}
      {fault ? <FaultBox fault={fault} /> : null}
      {rows === null && !fault ? <Empty>Waiting for the first tick…</Empty> : null}
      {rows && listed.length === 0 ? <Empty>The view has no rows.</Empty> : null}
      {listed.length ? <LiveTable name={name} rows={listed} changed={changed} /> : null}
      <p class="note" data-live={`rows:${name}`}>
        {listed.length} {about && about.rows > listed.length ? `of ${count(about.rows)} ` : ""}rows shown, live{live.value?.ready === false ? "; not every part runs" : ""}
      </p>
      <ChartOf name={name} rows={listed.map(([, row]) => row)} />
      <PlanOf name={name} />
      <PastOf name={name} now={rows} />
      <h2>SQL</h2>
      <SqlBox first={`SELECT * FROM ${name} LIMIT 20`} />
    </>
  );
}

/** Rows by their key: from the view's changes, or page by page when it is a large one. */
function useRows(name: string, large: boolean | null) {
  const [rows, setRows] = useState<Map<string, Row> | null>(null);
  const [fault, setFault] = useState<Fault | null>(null);
  const changed = useRef(new Map<string, number>());
  useEffect(() => {
    let timer = 0;
    let gone = false;
    let leave = () => {};
    const held = new Map<string, Row>();
    const take = (data: string) => {
      const news = JSON.parse(data) as ViewEvent;
      for (const id of changedCells(held, news)) changed.current.set(id, Date.now());
      applyEvent(held, news, LIVE_ROWS);
      setRows(new Map(held));
      setFault(null);
    };
    const lost = () => {
      api.viewRows(name, 1).catch((error: unknown) => { if (!gone) setFault(faultOf(error)); });
    };
    const look = () => {
      api.viewRows(name, LIVE_ROWS).then(
        (page) => {
          if (gone) return;
          setRows(new Map(page.rows.map((row, index) => [String(index), row])));
          setFault(null);
        },
        (error: unknown) => { if (!gone) setFault(faultOf(error)); },
      );
      timer = window.setTimeout(look, 2000);
    };
    if (large === true) look();
    else leave = follow(`api/views/${encodeURIComponent(name)}/changes`, take, lost);
    return () => {
      gone = true;
      clearTimeout(timer);
      leave();
    };
  }, [name, large === true]);
  return { rows, changed: changed.current, fault };
}

/** The order of two keys by their values, not by their text: 9 comes before 10. */
function byKey(a: string, b: string): number {
  const [left, right] = [parts(a), parts(b)];
  for (let at = 0; at < Math.max(left.length, right.length); at += 1) {
    const order = compare(left[at], right[at]);
    if (order) return order;
  }
  return 0;
}

function parts(key: string): unknown[] {
  const found: unknown = JSON.parse(key);
  return Array.isArray(found) ? found : typeof found === "object" && found !== null ? Object.values(found) : [found];
}

const FRESH_MS = 1500;

function LiveTable({ name, rows, changed }: { name: string; rows: [string, Row][]; changed: Map<string, number> }) {
  const columns = columnsOf(rows.map(([, row]) => row));
  const numbers = numbersOf(rows.map(([, row]) => row), columns);
  const since = Date.now() - FRESH_MS;
  return (
    <LongTable
      name={`Rows of ${name}`}
      columns={columns}
      numbers={numbers}
      items={rows}
      identify={([key]) => key}
      values={([, row], column) => row[column]}
      cells={([key, row]) => columns.map((column) => {
        const fresh = (changed.get(`${key}\n${column}`) ?? 0) > since;
        return <td key={column} class={`${numbers.has(column) ? "number" : ""} ${fresh ? "fresh" : ""}`} title={cell(row[column])}>{cell(row[column])}</td>;
      })}
    />
  );
}
