/** Rows as figures for charts. */

import { cell } from "./format";
import type { Row } from "./types";

const TIME = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d/;

/** The first column that holds times alone. */
export function timeColumn(rows: readonly Row[], columns: readonly string[]): string | undefined {
  return columns.find((column) => rows.length > 0 && rows.every((row) => typeof row[column] === "string" && TIME.test(row[column])));
}

/** Sums by time, oldest first: seconds and values. The last step is left out while it has not
 * ended: it would look like a fall. */
export function linesOf(rows: readonly Row[], time: string, value: string, now = Date.now()): [number[], number[]] {
  const sums = new Map<number, number>();
  for (const row of rows) {
    const at = Date.parse(String(row[time])) / 1000;
    if (!Number.isNaN(at)) sums.set(at, (sums.get(at) ?? 0) + Number(row[value] ?? 0));
  }
  const ordered = [...sums].sort(([a], [b]) => a - b);
  const [last, before] = [ordered.at(-1), ordered.at(-2)];
  if (last && before && last[0] + (last[0] - before[0]) > now / 1000 && last[0] <= now / 1000) ordered.pop();
  return [ordered.map(([at]) => at), ordered.map(([, sum]) => sum)];
}

/** The largest first, each with its share of the largest. */
export function barsOf(rows: readonly Row[], labels: readonly string[], value: string): { label: string; text: unknown; share: number }[] {
  const largest = Math.max(1e-9, ...rows.map((row) => Math.abs(Number(row[value] ?? 0))));
  return rows
    .map((row, index) => ({ label: labels.map((column) => cell(row[column])).join(" · ") || `row ${index + 1}`, text: row[value], share: Math.abs(Number(row[value] ?? 0)) / largest }))
    .sort((a, b) => b.share - a.share);
}

/** What a scale should reach so that a single high value does not flatten all others. */
export function reach(values: readonly number[]): number {
  const ordered = [...values].sort((a, b) => a - b);
  const largest = ordered.at(-1) ?? 0;
  const usual = ordered[Math.floor(ordered.length * 0.95)] ?? largest;
  return ordered.length >= 20 && usual > 0 && largest > 4 * usual ? usual * 1.5 : largest;
}

/** A line through the values in a box of 100 by 26, the largest near its top; empty for fewer than two. */
export function sparkPath(values: readonly number[]): string {
  if (values.length < 2) return "";
  const largest = Math.max(1e-9, ...values);
  const step = 100 / (values.length - 1);
  return values.map((value, index) => `${index ? "L" : "M"}${(index * step).toFixed(1)},${(25 - (Math.max(0, value) / largest) * 22).toFixed(1)}`).join(" ");
}
