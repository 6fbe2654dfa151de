/** Views: rows that update in place, and SQL over all of them. */

import { useEffect, useState } from "preact/hooks";
import * as api from "../api";
import { ApiError, streamUrl } from "../api";
import { live } from "../live";
import { Empty, FaultBox, Table, useLoaded } from "../parts/common";
import { applyEvent, type ViewEvent } from "../rows";
import type { Fault, Row, Rows } from "../types";

export function Views() {
  const { value: graph, fault } = useLoaded(api.graph, []);
  if (fault) return <FaultBox fault={fault} />;
  const views = graph?.nodes.filter((node) => node.kind === "view") ?? [];
  return (
    <>
      {graph && views.length === 0 ? <Empty>No view is declared. Add one with <code>tr.view(…)</code>.</Empty> : null}
      <ul class="cards">
        {views.map((view) => (
          <li class="card" key={view.name}><a href={`#/views/${encodeURIComponent(view.name)}`}>{view.name}</a></li>
        ))}
      </ul>
      <h2>SQL</h2>
      <SqlBox first={views[0] ? `SELECT * FROM ${views[0].name} LIMIT 20` : ""} />
    </>
  );
}

export function ViewPage({ name }: { name: string }) {
  const [rows, setRows] = useState<Map<string, Row> | null>(null);
  const [fault, setFault] = useState<Fault | null>(null);
  const { value: plan } = useLoaded(() => api.explain(name).catch(() => null), [name]);
  useEffect(() => {
    let pause = 500;
    let source: EventSource;
    let timer = 0;
    const held = new Map<string, Row>();
    const open = () => {
      source = new EventSource(streamUrl(`api/views/${encodeURIComponent(name)}/changes`));
      const take = (event: MessageEvent) => {
        pause = 500;
        applyEvent(held, JSON.parse(event.data as string) as ViewEvent, 500);
        setRows(new Map(held));
        setFault(null);
      };
      for (const kind of ["message", "snapshot", "change", "changes"]) source.addEventListener(kind, take as EventListener);
      source.onerror = () => {
        source.close();
        api.viewRows(name, 1).catch((error: unknown) => setFault(error instanceof ApiError ? error.fault : null));
        timer = window.setTimeout(open, pause);
        pause = Math.min(pause * 2, 5000);
      };
    };
    open();
    return () => {
      clearTimeout(timer);
      source.close();
    };
  }, [name]);
  const listed = rows ? [...rows.values()] : [];
  return (
    <>
      <h1>{name}</h1>
      {fault ? <FaultBox fault={fault} /> : null}
      {rows === null && !fault ? <Empty>Waiting for the first tick…</Empty> : null}
      {rows && listed.length === 0 ? <Empty>The view has no rows.</Empty> : null}
      {listed.length ? <Table rows={listed} name={`Rows of ${name}`} /> : null}
      <p class="note" data-live={`rows:${name}`}>{listed.length} rows shown, live{live.value?.ready === false ? "; not every part runs" : ""}</p>
      {plan?.text ? <details open><summary>How it is kept up to date</summary><pre>{plan.text}</pre></details> : null}
      <h2>SQL</h2>
      <SqlBox first={`SELECT * FROM ${name} LIMIT 20`} />
    </>
  );
}

export function SqlBox({ first }: { first: string }) {
  const [text, setText] = useState(first);
  const [answer, setAnswer] = useState<Rows | null>(null);
  const [fault, setFault] = useState<Fault | null>(null);
  const ask = () =>
    api.sql(text).then(
      (found) => {
        setAnswer(found);
        setFault(null);
      },
      (error: unknown) => setFault(error instanceof ApiError ? error.fault : { error: String(error), code: "page" }),
    );
  return (
    <form class="sql" onSubmit={(event) => { event.preventDefault(); void ask(); }}>
      <textarea aria-label="SQL" rows={3} value={text} onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void ask(); }} />
      <button type="submit">Run</button> <span class="note">Ctrl+Enter</span>
      {fault ? <FaultBox fault={fault} /> : null}
      {answer ? (
        <>
          <p class="note">{answer.rows.length} rows at {answer.position ?? "–"}</p>
          <Table rows={answer.rows} name="SQL result" />
        </>
      ) : null}
    </form>
  );
}
