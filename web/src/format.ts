/** Figures and values as people read them. */

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export function count(value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (Math.abs(value) >= 1e6) return `${(value / 1e6).toFixed(1)} M`;
  return WHOLE.format(value);
}

export function rate(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  return value >= 100 ? `${count(value)}/s` : `${value.toFixed(1)}/s`;
}

export function age(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`;
  return `${(ms / 3_600_000).toFixed(1)} h`;
}

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit ? value.toFixed(1) : value} ${units[unit]}`;
}

const TWO = (value: number) => String(value).padStart(2, "0");

/** A moment, the same everywhere: local, as 2026-11-19 05:12:03. */
export function moment(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "–";
  const at = new Date(ms);
  return `${at.getFullYear()}-${TWO(at.getMonth() + 1)}-${TWO(at.getDate())} ${clock(ms)}`;
}

/** The time of day of a moment, local. */
export function clock(ms: number): string {
  const at = new Date(ms);
  return `${TWO(at.getHours())}:${TWO(at.getMinutes())}:${TWO(at.getSeconds())}`;
}

/** How this page writes times: local, with the distance from UTC. */
export function zone(now = new Date()): string {
  const minutes = -now.getTimezoneOffset();
  const sign = minutes < 0 ? "−" : "+";
  return minutes === 0 ? "UTC" : `UTC${sign}${TWO(Math.floor(Math.abs(minutes) / 60))}:${TWO(Math.abs(minutes) % 60)}`;
}

/** One or many of something. */
export function many(value: number, what: string): string {
  return `${count(value)} ${what}${value === 1 ? "" : "s"}`;
}

/** A topic's setting as people read it: durations and sizes in words, the number behind them. */
export function setting(name: string, value: string): string {
  if (!/^-?\d+$/.test(value)) return value;
  if (value === "9223372036854775807" || value === "-1") return `unlimited (${value})`;
  const number = Number(value);
  if (name.endsWith(".ms") && number >= 1000) return `${span(number)} (${value})`;
  if (name.endsWith(".bytes") && number >= 1000) return `${bytes(number)} (${value})`;
  return value;
}

function span(ms: number): string {
  for (const [unit, of] of [["day", 86_400_000], ["hour", 3_600_000], ["minute", 60_000], ["second", 1000]] as const) {
    if (ms % of === 0) return many(ms / of, unit);
  }
  return age(ms);
}

/** Two values of a column in their order: numbers by size, texts as people sort them, NULL last. */
export function compare(a: unknown, b: unknown): number {
  const [none, other] = [a === null || a === undefined, b === null || b === undefined];
  if (none || other) return Number(none) - Number(other);
  const [x, y] = [asNumber(a), asNumber(b)];
  if (x !== null && y !== null) return x - y;
  return cell(a).localeCompare(cell(b), "en", { numeric: true });
}

function asNumber(value: unknown): number | null {
  if (typeof value === "number") return value;
  return typeof value === "string" && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : null;
}

/** A value of a row or record as short text; never as markup. */
export function cell(value: unknown): string {
  if (value === null || value === undefined) return "NULL";
  if (typeof value === "string") return value;
  if (typeof value === "object") return JSON.stringify(value);
  return String(value);
}

export function columnsOf(rows: readonly Record<string, unknown>[]): string[] {
  const names = new Set<string>();
  for (const row of rows) for (const name of Object.keys(row)) names.add(name);
  return [...names];
}

/** The columns that hold numbers alone; decimals come as text. */
export function numbersOf(rows: readonly Record<string, unknown>[], columns: readonly string[]): Set<string> {
  const number = (value: unknown) => typeof value === "number" || (typeof value === "string" && /^-?\d+\.\d+$/.test(value));
  return new Set(columns.filter((column) => {
    const told = rows.map((row) => row[column]).filter((value) => value !== null && value !== undefined);
    return told.length > 0 && told.every(number);
  }));
}

/** JSON text indented, anything else as it is. */
export function pretty(text: string | null): string {
  if (text === null) return "NULL";
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

const OPERATIONS: Record<string, string> = { c: "insert", u: "update", d: "delete", r: "copy", t: "truncate" };

/** A record's value in one line; of a change event what it did, and the row it did it to. */
export function peek(text: string | null, most = 200): { op: string; text: string } {
  if (text === null) return { op: "", text: "tombstone" };
  try {
    const event = JSON.parse(text) as { op?: unknown; before?: unknown; after?: unknown } | null;
    const op = typeof event === "object" && event !== null && typeof event.op === "string" && Object.hasOwn(OPERATIONS, event.op) ? OPERATIONS[event.op] : undefined;
    if (op && event) return { op, text: JSON.stringify(event.after ?? event.before ?? null).slice(0, most) };
  } catch {
    // not JSON: shown as it is
  }
  return { op: "", text: text.slice(0, most) };
}
