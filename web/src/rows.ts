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
