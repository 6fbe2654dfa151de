/** Pieces that every page uses: states, errors, tables, charts. */

import { effect } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import uPlot from "uplot";
import { ApiError, history as pastOf } from "../api";
import { cell, clock, columnsOf, compare, numbersOf } from "../format";
import { history, live, me, moved, seed } from "../live";
import { reach, sparkPath } from "../series";
import type { Alarm, Fault, Row } from "../types";
import { onlyLooks } from "../who";

export function State({ state }: { state: string }) {
  return <span class={`state state-${state}`}>{state}</span>;
}

export function FaultBox({ fault }: { fault: Fault }) {
  return (
    <div class="fault" role="alert">
      <strong>{fault.error}</strong> <code>{fault.code}</code>
      {fault.detail ? <pre>{fault.detail}</pre> : null}
      {fault.hint ? <p>hint: {fault.hint}</p> : null}
      {fault.traceback ? (
        <details>
          <summary>traceback</summary>
          <pre>{fault.traceback}</pre>
        </details>
      ) : null}
    </div>
  );
}

export function AlarmBox({ alarm }: { alarm: Alarm }) {
  return (
    <div class={`alarm alarm-${alarm.level}`} role="alert">
      <strong>{alarm.what}</strong> {alarm.message}. <em>{alarm.hint}</em>
    </div>
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

export function Table({ rows, name, keys }: { rows: readonly Row[]; name: string; keys?: readonly string[] }) {
  const columns = columnsOf(rows);
  const numbers = numbersOf(rows, columns);
  return (
    <LongTable
      name={name}
      columns={columns}
      numbers={numbers}
      items={rows}
      identify={(_, index) => keys?.[index] ?? String(index)}
      values={keys ? undefined : (row, column) => row[column]}
      cells={(row) => columns.map((column) => (
        <td key={column} class={numbers.has(column) ? "number" : ""} title={cell(row[column])}>{cell(row[column])}</td>
      ))}
    />
  );
}

const LINE = 34;
const PLAIN = 100;
const BEYOND = 15;

/** A table of any length: beyond a hundred rows only those in sight are in the page. */
export function LongTable<T>({ name, columns, numbers, items: given, identify, cells, values }: {
  name: string;
  columns: readonly string[];
  numbers?: ReadonlySet<string>;
  items: readonly T[];
  identify: (item: T, index: number) => string;
  cells: (item: T) => ComponentChildren;
  /** What a column is sorted by; without it the table is not sorted. */
  values?: (item: T, column: string) => unknown;
}) {
  const [top, setTop] = useState(0);
  const [order, setOrder] = useState<{ column: string; down: boolean } | null>(null);
  const items = order && values ? [...given].sort((a, b) => compare(values(a, order.column), values(b, order.column)) * (order.down ? -1 : 1)) : given;
  const sort = (column: string) => setOrder(order?.column !== column ? { column, down: false } : order.down ? null : { column, down: true });
  const box = useRef<HTMLDivElement>(null);
  const long = items.length > PLAIN;
  const first = long ? Math.max(0, Math.min(Math.floor(top / LINE), items.length - 1) - BEYOND) : 0;
  const seen = long ? Math.ceil((box.current?.clientHeight ?? 600) / LINE) + 2 * BEYOND : items.length;
  const shown = items.slice(first, first + seen);
  const below = items.length - first - shown.length;
  return (
    <div class={long ? "scroll long" : "scroll"} ref={box} tabIndex={long ? 0 : undefined} role={long ? "region" : undefined} aria-label={long ? `${name}, scrolling` : undefined}
      onScroll={long ? (event) => setTop(event.currentTarget.scrollTop) : undefined}>
      <table aria-label={name} aria-rowcount={items.length + 1}>
        <thead>
          <tr>{columns.map((column) => (
            <th key={column} scope="col" class={numbers?.has(column) ? "number" : ""} aria-sort={order?.column === column ? (order.down ? "descending" : "ascending") : undefined}>
              {values ? <button type="button" class="sort" onClick={() => sort(column)}>{column}{order?.column === column ? (order.down ? " ▾" : " ▴") : ""}</button> : column}
            </th>
          ))}</tr>
        </thead>
        <tbody>
          {first > 0 ? <tr aria-hidden="true" key="above" style={{ height: `${first * LINE}px` }} /> : null}
          {shown.map((item, index) => <tr key={identify(item, first + index)} aria-rowindex={first + index + 2}>{cells(item)}</tr>)}
          {below > 0 ? <tr aria-hidden="true" key="below" style={{ height: `${below * LINE}px` }} /> : null}
        </tbody>
      </table>
    </div>
  );
}

/** A button whose work may fail: it shows that it works, then what came of it. It is an operator's
 * unless it only `looks`. */
export function Act<T>({ label, work, told, sure, looks }: { label: string; work: () => Promise<T>; told: (done: T) => ComponentChildren; sure?: string; looks?: boolean }) {
  const why = looks ? "" : onlyLooks(me.value);
  const [busy, setBusy] = useState(false);
  const [asked, setAsked] = useState(false);
  const [said, setSaid] = useState<ComponentChildren>(null);
  const go = () => {
    setBusy(true);
    setAsked(false);
    work().then(
      (done) => setSaid(told(done)),
      (error: unknown) => setSaid(<FaultBox fault={faultOf(error)} />),
    ).finally(() => setBusy(false));
  };
  return (
    <div class="act">
      {asked ? (
        <span role="alertdialog" aria-label={label}>
          {sure} <button type="button" onClick={go}>Yes, {label.toLowerCase()}</button> <button type="button" class="quiet" onClick={() => setAsked(false)}>No</button>
        </span>
      ) : (
        <button type="button" disabled={busy || why !== ""} title={why || undefined} onClick={() => (sure ? setAsked(true) : go())}>{busy ? "Working…" : label}</button>
      )}
      <div class="result" aria-live="polite">{said}</div>
    </div>
  );
}

export function faultOf(error: unknown): Fault {
  return error instanceof ApiError ? error.fault : { error: String(error), code: "page" };
}

/** Loads once, and again when `deps` change or every `every` ms. */
export function useLoaded<T>(load: () => Promise<T>, deps: unknown[], every = 0): { value: T | null; fault: Fault | null } {
  const [value, setValue] = useState<T | null>(null);
  const [fault, setFault] = useState<Fault | null>(null);
  useEffect(() => {
    let gone = false;
    const once = () =>
      load().then(
        (found) => {
          if (!gone) {
            setValue(found);
            setFault(null);
          }
        },
        (error: unknown) => {
          if (!gone) setFault(faultOf(error));
        },
      );
    void once();
    const timer = every ? setInterval(once, every) : 0;
    return () => {
      gone = true;
      clearInterval(timer);
    };
  }, deps);
  return { value, fault };
}

/** What `load` gives, asked again whenever the views move; one question at a time. */
export function useAtTick<T>(load: () => Promise<T>): T | null {
  const [value, setValue] = useState<T | null>(null);
  useEffect(() => {
    let [asking, again, gone] = [false, false, false];
    const ask = () => {
      if (asking) {
        again = true;
        return;
      }
      asking = true;
      void load()
        .then((found) => { if (!gone) setValue(found); }, () => undefined) // not ready yet: the next tick
        .then(() => {
          asking = false;
          if (again && !gone) {
            again = false;
            ask();
          }
        });
    };
    const leave = effect(() => {
      void moved.value;
      ask();
    });
    return () => {
      gone = true;
      leave();
    };
  }, []);
  return value;
}

/** The last half hour of one figure. */
export function Chart({ series, label, unit }: { series: string; label: string; unit?: (value: number) => string }) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  useEffect(() => {
    const box = place.current;
    if (!box) return;
    const style = getComputedStyle(box);
    const [ink, accent] = [style.color, style.getPropertyValue("--accent") || "#0d9488"];
    const axis = { stroke: ink, grid: { show: false }, ticks: { show: false } };
    plot.current = new uPlot(
      {
        width: Math.max(240, box.clientWidth),
        height: 150,
        series: [{}, { label, stroke: accent, fill: `${accent}22`, width: 1.5, points: { show: false } }],
        axes: [{ ...axis, values: (_: uPlot, ticks: number[]) => ticks.map((at) => clock(at * 1000)), space: 80 }, { ...axis, size: 70, ...(unit ? { values: (_: uPlot, ticks: number[]) => ticks.map(unit) } : {}) }],
        scales: { y: { range: (_: uPlot, low: number, high: number) => [Math.min(0, low ?? 0), Math.max(Math.min(high ?? 1, reach(history.get(series)?.values ?? [])), 1)] } },
        legend: { show: false },
        cursor: { show: false },
      },
      [[], []],
      box,
    );
    let gone = false;
    pastOf(series).then((past) => { if (!gone) { seed(series, past); draw(); } }, () => undefined);
    const fit = () => plot.current?.setSize({ width: Math.max(240, box.clientWidth), height: 150 });
    addEventListener("resize", fit);
    return () => {
      gone = true;
      removeEventListener("resize", fit);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [series]);
  const draw = () => {
    const kept = history.get(series);
    if (kept && plot.current) plot.current.setData([kept.at, kept.values]);
  };
  useEffect(draw, [series, live.value]);
  const known = history.get(series)?.values ?? [];
  const newest = known.at(-1);
  const peak = Math.max(0, ...known);
  const cut = peak > reach(known);
  return (
    <figure>
      <figcaption>{label}{newest !== undefined ? <>: <b data-live={`chart:${series}`}>{unit ? unit(newest) : newest}</b>{cut ? `, peak ${unit ? unit(peak) : peak}` : ""}</> : ": no figure yet"}</figcaption>
      <div ref={place} class="chart" />
    </figure>
  );
}

const SPARK = 120;

/** A figure's last minutes as a line without axes. */
export function Spark({ series }: { series: string }) {
  const [seeded, setSeeded] = useState(false);
  useEffect(() => {
    let gone = false;
    pastOf(series).then((past) => { if (!gone) { seed(series, past); setSeeded(true); } }, () => undefined);
    return () => { gone = true; };
  }, [series]);
  void seeded;
  const values = history.get(series)?.values.slice(-SPARK) ?? [];
  const line = sparkPath(values);
  return (
    <svg class="spark" viewBox="0 0 100 26" preserveAspectRatio="none" aria-hidden="true">
      {line ? <><path class="area" d={`${line} V26 H0 Z`} /><path d={line} /></> : null}
    </svg>
  );
}
