/** Keeps the rows of a view from its event stream: a snapshot, then changes. */

import type { Row } from "./types";

export interface ViewEvent {
  snapshot?: { key: unknown; row: Row }[];
  changes?: { key: unknown; row: Row | null }[];
}

export function applyEvent(held: Map<string, Row>, event: ViewEvent, limit: number): void {
  if (event.snapshot) {
    held.clear();
    for (const item of event.snapshot) {
      if (held.size < limit) held.set(JSON.stringify(item.key), item.row);
    }
  }
  for (const item of event.changes ?? []) {
    const key = JSON.stringify(item.key);
    if (item.row === null) held.delete(key);
    else if (held.has(key) || held.size < limit) held.set(key, item.row);
  }
}

/** The cells an event changes in rows that are shown, as `key\ncolumn`. */
export function changedCells(held: ReadonlyMap<string, Row>, event: ViewEvent): string[] {
  const found: string[] = [];
  for (const item of event.changes ?? []) {
    const key = JSON.stringify(item.key);
    if (item.row === null) continue;
    const before = held.get(key);
    for (const [column, value] of Object.entries(item.row)) {
      if (!before || JSON.stringify(before[column]) !== JSON.stringify(value)) found.push(`${key}\n${column}`);
    }
  }
  return found;
}

/** How many rows are in only one of two sets of rows. */
export function differing(before: readonly Row[], now: readonly Row[]): number {
  const text = (row: Row) => JSON.stringify(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1)));
  const left = new Set(before.map(text));
  const right = new Set(now.map(text));
  const alone = (these: Set<string>, those: Set<string>) => [...these].filter((row) => !those.has(row)).length;
  return Math.max(alone(left, right), alone(right, left));
}
