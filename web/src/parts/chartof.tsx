/** The rows of a view as a chart: over time where a column is one, as bars otherwise. */

import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { cell, columnsOf, moment, numbersOf } from "../format";
import { barsOf, linesOf, timeColumn } from "../series";
import type { Row } from "../types";

const BARS = 30;

export function ChartOf({ name, rows }: { name: string; rows: readonly Row[] }) {
  const [open, setOpen] = useState(false);
  const columns = columnsOf(rows);
  const numbers = [...numbersOf(rows, columns)].filter((column) => column !== "id");
  if (numbers.length === 0) return null;
  return (
    <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>As a chart</summary>
      {open ? <Drawn name={name} rows={rows} columns={columns} numbers={numbers} /> : null}
    </details>
  );
}

function Drawn({ name, rows, columns, numbers }: { name: string; rows: readonly Row[]; columns: string[]; numbers: string[] }) {
  const [chosen, setChosen] = useState(numbers[0] ?? "");
  const time = timeColumn(rows, columns);
  const labels = columns.filter((column) => !numbers.includes(column) && column !== time);
  return (
    <>
      <label>Show <select value={chosen} onChange={(event) => setChosen(event.currentTarget.value)}>{numbers.map((column) => <option key={column}>{column}</option>)}</select></label>
      {time ? <Lines rows={rows} time={time} value={chosen} /> : (
        <ol class="bars" aria-label={`${chosen} of ${name}`}>
          {barsOf(rows, labels, chosen).slice(0, BARS).map((bar) => (
            <li key={bar.label}><span>{bar.label}</span><i style={{ width: `${bar.share * 60}%` }} /><b>{cell(bar.text)}</b></li>
          ))}
        </ol>
      )}
    </>
  );
}

function Lines({ rows, time, value }: { rows: readonly Row[]; time: string; value: string }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const box = place.current;
    if (!box) return;
    const style = getComputedStyle(box);
    const [ink, accent] = [style.color, style.getPropertyValue("--accent") || "#0d9488"];
    const axis = { stroke: ink, grid: { show: false }, ticks: { show: false } };
    const plot = new uPlot({ width: Math.max(240, box.clientWidth), height: 220, series: [{}, { label: value, stroke: accent, fill: `${accent}22`, width: 1.5 }], axes: [{ ...axis, values: (_: uPlot, ticks: number[]) => ticks.map((at) => moment(at * 1000).slice(5, 16)), space: 110 }, { ...axis, size: 70 }], legend: { show: false } }, linesOf(rows, time, value), box);
    return () => plot.destroy();
  }, [rows, time, value]);
  return <figure><figcaption>{value} by {time}</figcaption><div ref={place} class="chart wide" /></figure>;
}
