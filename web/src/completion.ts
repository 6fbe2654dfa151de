/** Completion of names in SQL: views behind FROM and JOIN, else columns of the views a query names. */

export type Names = readonly { name: string; columns: readonly string[] }[];

export interface Completion {
  /** The part of the text that a chosen word replaces. */
  from: number;
  to: number;
  words: string[];
}

const MOST = 8;
const WORDS = ["SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "LIMIT", "JOIN", "LEFT JOIN", "COUNT(*)", "DISTINCT", "BETWEEN", "DESC"];

/** What could stand where the caret is; null if nothing is begun or nothing fits. */
export function complete(text: string, caret: number, names: Names): Completion | null {
  const before = text.slice(0, caret);
  const begun = /(?:([A-Za-z_]\w*)\.)?([A-Za-z_]\w*)?$/.exec(before);
  const [, of, word = ""] = begun ?? [];
  if (!word && !of) return null;
  const head = before.slice(0, before.length - word.length - (of ? of.length + 1 : 0));
  if (inside(head)) return null;
  const wanted = word.toLowerCase();
  const fits = (candidates: Iterable<string>) => [...new Set(candidates)].filter((one) => one.toLowerCase().startsWith(wanted) && one !== word).slice(0, MOST);
  const words = of ? fits(columnsOf(of, text, names)) : /\b(from|join)\s+$/i.test(head) ? fits(names.map((view) => view.name)) : fits([...mentioned(text, names), ...names.map((view) => view.name), ...WORDS]);
  const rest = /^\w*/.exec(text.slice(caret))?.[0].length ?? 0;
  return words.length ? { from: caret - word.length, to: caret + rest, words } : null;
}

/** Whether the place behind `head` lies in a string or a comment. */
function inside(head: string): boolean {
  const line = head.slice(head.lastIndexOf("\n") + 1);
  return (head.split("'").length - 1) % 2 === 1 || line.includes("--");
}

function mentioned(text: string, names: Names): string[] {
  const found = new Set(text.match(/[A-Za-z_]\w*/g) ?? []);
  return names.filter((view) => found.has(view.name)).flatMap((view) => view.columns);
}

/** The columns of a view by its name or by the alias a query gives it. */
function columnsOf(of: string, text: string, names: Names): readonly string[] {
  const alias = new RegExp(`([A-Za-z_]\\w*)\\s+(?:as\\s+)?${of}\\b`, "gi");
  const called = [...text.matchAll(alias)].map((match) => match[1]);
  return names.filter((view) => view.name === of || called.includes(view.name)).flatMap((view) => view.columns);
}
