/** The live state: one event stream feeds every page; it comes back by itself. */

import { signal } from "@preact/signals";
import { streamUrl } from "./api";
import type { Live } from "./types";

export const live = signal<Live | null>(null);
export const connected = signal(false);
export const route = signal(location.hash.slice(1) || "/");

const KEPT = 300;
/** Figures of the last minutes by name, for the small charts: [seconds, value][]. */
export const history = new Map<string, { at: number[]; values: number[] }>();

export function remember(name: string, at: number, value: number): void {
  const series = history.get(name) ?? { at: [], values: [] };
  series.at.push(at / 1000);
  series.values.push(value);
  if (series.at.length > KEPT) {
    series.at.shift();
    series.values.shift();
  }
  history.set(name, series);
}

export function take(state: Live): void {
  for (const topic of state.topics) remember(`topic:${topic.name}`, state.at, topic.rate);
  for (const group of state.groups) remember(`group:${group.name}`, state.at, group.lag);
  for (const part of state.parts) {
    if (typeof part.freshness_ms === "number") {
      remember(`part:${part.kind}-${part.name}`, state.at, part.freshness_ms);
    }
  }
  live.value = state;
}

export function connect(): void {
  let pause = 500;
  const open = () => {
    const source = new EventSource(streamUrl("api/live"));
    source.onmessage = (event) => {
      connected.value = true;
      pause = 500;
      take(JSON.parse(event.data as string) as Live);
    };
    source.onerror = () => {
      connected.value = false;
      source.close();
      setTimeout(open, pause);
      pause = Math.min(pause * 2, 5000);
    };
  };
  open();
  addEventListener("hashchange", () => {
    route.value = location.hash.slice(1) || "/";
  });
}
