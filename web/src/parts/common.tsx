/** Pieces that every page uses: states, errors, tables, charts. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import uPlot from "uplot";
import { ApiError } from "../api";
import { cell, columnsOf } from "../format";
import { history, live } from "../live";
import type { Alarm, Fault, Row } from "../types";

export function State({ state }: { state: string }) {
  return <span class={`state state-${state}`}>{state}</span>;
}

export function FaultBox({ fault }: { fault: Fault }) {
  return (
    <div class="fault" role="alert">
      <strong>{fault.error}</strong> <code>{fault.code}</code>
      {fault.detail ? <pre>{fault.detail}</pre> : null}
      {fault.hint ? <p>hint: {fault.hint}</p> : null}
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

export function Table({ rows, name }: { rows: readonly Row[]; name: string }) {
  const columns = columnsOf(rows);
  return (
    <div class="scroll">
      <table aria-label={name}>
        <thead>
          <tr>{columns.map((column) => <th key={column} scope="col">{column}</th>)}</tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {columns.map((column) => (
                <td key={column} class={typeof row[column] === "number" ? "number" : ""}>{cell(row[column])}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
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
          if (!gone) setFault(error instanceof ApiError ? error.fault : { error: String(error), code: "page" });
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

/** The last minutes of one figure. */
export function Chart({ series, label }: { series: string; label: string }) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  useEffect(() => {
    const box = place.current;
    if (!box) return;
    const ink = getComputedStyle(box).color;
    plot.current = new uPlot(
      {
        width: Math.max(240, box.clientWidth),
        height: 140,
        series: [{}, { label, stroke: "#0d9488", fill: "#0d948822", width: 1.5 }],
        axes: [{ stroke: ink, grid: { show: false } }, { stroke: ink, size: 60 }],
        legend: { show: false },
        cursor: { show: false },
      },
      [[], []],
      box,
    );
    return () => plot.current?.destroy();
  }, [series]);
  useEffect(() => {
    const kept = history.get(series);
    if (kept && plot.current) plot.current.setData([kept.at, kept.values]);
  }, [series, live.value]);
  return (
    <figure>
      <figcaption>{label}</figcaption>
      <div ref={place} class="chart" />
    </figure>
  );
}
