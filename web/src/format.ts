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

/** A value of a row or record as short text; never as markup. */
export function cell(value: unknown): string {
  if (value === null || value === undefined) return "∅";
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
  if (text === null) return "∅ (null)";
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

const OPERATIONS: Record<string, string> = { c: "insert", u: "update", d: "delete", r: "copy", t: "truncate" };

/** A record's value in one line; of a change event what it did, and the row it did it to. */
export function peek(text: string | null, most = 200): { op: string; text: string } {
  if (text === null) return { op: "", text: "∅ tombstone" };
  try {
    const event = JSON.parse(text) as { op?: unknown; before?: unknown; after?: unknown } | null;
    const op = typeof event === "object" && event !== null && typeof event.op === "string" && Object.hasOwn(OPERATIONS, event.op) ? OPERATIONS[event.op] : undefined;
    if (op && event) return { op, text: JSON.stringify(event.after ?? event.before ?? null).slice(0, most) };
  } catch {
    // not JSON: shown as it is
  }
  return { op: "", text: text.slice(0, most) };
}
