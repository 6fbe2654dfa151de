import { complete } from "./completion";
import { Kept } from "./kept";
import { beforeEach, describe, expect, test } from "vitest";
import { age, bytes, cell, columnsOf, compare, count, many, numbersOf, peek, pretty, rate, setting } from "./format";
import { around, layout, MOST_FOR_DAGRE, NODE_HEIGHT } from "./layout";
import { applyEvent, changedCells, differing } from "./rows";
import { barsOf, linesOf, reach, sparkPath, timeColumn } from "./series";
import type { Row } from "./types";
import { onlyLooks } from "./who";

test("a viewer is told why a button is not theirs", () => {
  expect(onlyLooks({ role: "viewer", user: "", way: "token" })).not.toBe("");
  expect(onlyLooks({ role: "operator", user: "carol", way: "oidc" })).toBe("");
  expect(onlyLooks(null)).toBe("");
});

describe("figures", () => {
  test("are short and say when they are unknown", () => {
    expect(count(1234)).toBe("1,234");
    expect(count(2_500_000)).toBe("2.5 M");
    expect(count(null)).toBe("–");
    expect(rate(0.25)).toBe("0.3/s");
    expect(age(950)).toBe("950 ms");
    expect(age(90_000)).toBe("2 min");
    expect(bytes(999)).toBe("999 B");
    expect(bytes(1_500_000)).toBe("1.5 MB");
  });
  test("values become text, never markup", () => {
    expect(cell("<img onerror=alert(1)>")).toBe("<img onerror=alert(1)>");
    expect(cell({ a: 1 })).toBe('{"a":1}');
    expect(cell(null)).toBe("NULL");
    expect(pretty("not json")).toBe("not json");
    expect(columnsOf([{ a: 1 }, { b: 2 }])).toEqual(["a", "b"]);
    expect([...numbersOf([{ a: 1, b: "2.50", c: "2", d: null }], ["a", "b", "c", "d"])]).toEqual(["a", "b"]);
  });
});

test("a change event says in one line what it did to which row", () => {
  expect(peek('{"before":null,"after":{"id":1},"op":"c"}')).toEqual({ op: "insert", text: '{"id":1}' });
  expect(peek('{"before":{"id":1},"after":null,"op":"d"}')).toEqual({ op: "delete", text: '{"id":1}' });
  for (const plain of ["not json", '"op"', "null", '{"op":"__proto__"}', '{"op":7}']) expect(peek(plain)).toEqual({ op: "", text: plain });
  expect(peek(null).text).toContain("tombstone");
  expect(peek("x".repeat(500)).text.length).toBe(200);
});

test("a line without axes stays in its box", () => {
  expect(sparkPath([])).toBe("");
  expect(sparkPath([0, 5, 10])).toBe("M0.0,25.0 L50.0,14.0 L100.0,3.0");
  expect(sparkPath([0, 0])).toBe("M0.0,25.0 L100.0,25.0");
});

describe("rows of a view", () => {
  let held: Map<string, Row>;
  beforeEach(() => {
    held = new Map();
  });
  test("follow a snapshot and its changes", () => {
    applyEvent(held, { snapshot: [{ key: { c: "NL" }, row: { c: "NL", n: 1 } }] }, 10);
    applyEvent(held, { changes: [{ key: { c: "NL" }, row: { c: "NL", n: 2 } }, { key: { c: "DE" }, row: { c: "DE", n: 1 } }] }, 10);
    expect([...held.values()]).toEqual([{ c: "NL", n: 2 }, { c: "DE", n: 1 }]);
    applyEvent(held, { changes: [{ key: { c: "NL" }, row: null }] }, 10);
    expect([...held.values()]).toEqual([{ c: "DE", n: 1 }]);
  });
  test("a new snapshot replaces everything, and the limit holds", () => {
    applyEvent(held, { snapshot: [1, 2, 3].map((n) => ({ key: n, row: { n } })) }, 2);
    expect(held.size).toBe(2);
    applyEvent(held, { snapshot: [] }, 2);
    expect(held.size).toBe(0);
  });
});

test("the topology runs from left to right", () => {
  const placed = layout({
    nodes: ["a", "b"].map((name) => ({ name, kind: "view", label: name })),
    edges: [{ from: "a", to: "b" }],
  });
  const [a, b] = placed.nodes;
  expect(a!.x).toBeLessThan(b!.x);
  expect(placed.edges[0]!.path.startsWith("M")).toBe(true);
});

test("a line that passes a column runs between its nodes", () => {
  const names = ["a", "b", "c", "d"];
  const placed = layout({
    nodes: names.map((name) => ({ name, kind: "view", label: name })),
    edges: [{ from: "a", to: "b" }, { from: "b", to: "d" }, { from: "a", to: "c" }, { from: "c", to: "d" }, { from: "a", to: "d" }],
  });
  const level = /H[\d.]+/.exec(placed.edges[4]!.path);
  expect(level).not.toBeNull();
  const at = Number(/([\d.]+) H/.exec(placed.edges[4]!.path)![1]);
  for (const name of ["b", "c"]) {
    const { y } = placed.nodes.find((one) => one.node.name === name)!;
    expect(at < y || at > y + NODE_HEIGHT).toBe(true);
  }
});

test("only cells that changed are marked", () => {
  const held = new Map<string, Row>([['{"c":"NL"}', { c: "NL", n: 1, m: 2 }]]);
  expect(changedCells(held, { changes: [{ key: { c: "NL" }, row: { c: "NL", n: 5, m: 2 } }, { key: { c: "DE" }, row: null }] })).toEqual(['{"c":"NL"}\nn']);
});

test("rows differ whatever the order of their columns", () => {
  expect(differing([{ a: 1, b: 2 }], [{ b: 2, a: 1 }])).toBe(0);
  expect(differing([{ a: 1 }, { a: 2 }], [{ a: 1 }, { a: 3 }])).toBe(1);
});

describe("a large topology", () => {
  const names = Array.from({ length: 700 }, (_, number) => `t${number}`);
  const graph = {
    nodes: [{ name: "s", kind: "source", label: "s" }, ...names.map((name) => ({ name, kind: "table", label: name })), { name: "v", kind: "view", label: "v" }],
    edges: [...names.map((name) => ({ from: "s", to: name })), { from: "t3", to: "v" }],
  };
  test("stands in columns, inputs to the left", () => {
    expect(graph.nodes.length).toBeGreaterThan(MOST_FOR_DAGRE);
    const placed = new Map(layout(graph).nodes.map((one) => [one.node.name, one]));
    expect(placed.get("s")!.x).toBeLessThan(placed.get("t3")!.x);
    expect(placed.get("t3")!.x).toBeLessThan(placed.get("v")!.x);
    expect(new Set([...placed.values()].map((one) => `${one.x},${one.y}`)).size).toBe(702);
  });
  test("is cut to what is looked for, with its inputs and readers", () => {
    expect(around(graph, "v").nodes.map((node) => node.name)).toEqual(["s", "t3", "v"]);
    expect(around(graph, "").nodes.length).toBe(702);
  });
});

describe("a chart of any view", () => {
  test("is drawn over time where a column is one, summed over the rest", () => {
    const rows = [{ minute: "2026-11-16T10:01:00Z", c: "NL", n: "2.50" }, { minute: "2026-11-16T10:00:00Z", c: "NL", n: 1 }, { minute: "2026-11-16T10:01:00Z", c: "DE", n: 1 }];
    expect(timeColumn(rows, ["c", "minute"])).toBe("minute");
    expect(linesOf(rows, "minute", "n")[1]).toEqual([1, 3.5]);
  });
  test("and as bars otherwise, the largest first", () => {
    const bars = barsOf([{ c: "NL", n: 1 }, { c: "DE", n: 4 }], ["c"], "n");
    expect(bars.map((bar) => [bar.label, bar.share])).toEqual([["DE", 1], ["NL", 0.25]]);
  });
});

describe("what people read", () => {
  test("orders values by what they are", () => {
    expect(["10", "9", "101", "b", "a", null].sort(compare)).toEqual(["9", "10", "101", "a", "b", null]);
    expect([3, 20, 1].sort(compare)).toEqual([1, 3, 20]);
    expect(["10.50", "9.75"].sort(compare)).toEqual(["9.75", "10.50"]);
  });
  test("says settings in words", () => {
    expect(setting("retention.ms", "604800000")).toBe("7 days (604800000)");
    expect(setting("flush.messages", "9223372036854775807")).toBe("unlimited (9223372036854775807)");
    expect(setting("cleanup.policy", "compact")).toBe("compact");
    expect(many(1, "partition")).toBe("1 partition");
  });
  test("leaves out a step that has not ended", () => {
    const rows = [0, 60, 120].map((at) => ({ minute: new Date(at * 1000).toISOString(), n: 5 }));
    expect(linesOf(rows, "minute", "n", 150_000)[0]).toEqual([0, 60]);
    expect(linesOf(rows, "minute", "n", 180_001)[0]).toEqual([0, 60, 120]);
  });
  test("does not let one high value flatten all others", () => {
    expect(reach([...Array<number>(30).fill(10), 4000])).toBe(15);
    expect(reach([10, 4000])).toBe(4000);
  });
});

describe("completion of SQL", () => {
  const names = [{ name: "open_orders", columns: ["country", "orders"] }, { name: "spend", columns: ["customer_id", "total"] }];
  const at = (text: string) => complete(text, text.length, names);
  test("offers views behind FROM, columns of what a query names elsewhere", () => {
    expect(at("SELECT * FROM op")?.words).toEqual(["open_orders"]);
    expect(at("SELECT country FROM open_orders WHERE or")?.words[0]).toBe("orders");
    expect(at("SELECT s.to FROM spend AS s WHERE s.to")?.words).toEqual(["total"]);
    expect(at("SELECT o.")).toBeNull();
    expect(at("SELECT * FROM open_orders o WHERE o.")?.words).toEqual(["country", "orders"]);
  });
  test("offers nothing inside a string, a comment or behind a space", () => {
    expect(at("SELECT 'op")).toBeNull();
    expect(at("-- op")).toBeNull();
    expect(at("SELECT ")).toBeNull();
  });
  test("replaces the whole word", () => {
    expect(complete("SELECT * FROM opxx", 16, names)).toEqual({ from: 14, to: 18, words: ["open_orders"] });
  });
});

describe("texts kept in a browser", () => {
  test("stand once, the newest first, and are only so many", () => {
    const kept = new Kept("k", 2);
    for (const text of ["a", "b", " a ", "c", ""]) kept.add(text);
    expect(kept.all()).toEqual(["c", "a"]);
    kept.remove("a");
    expect(kept.all()).toEqual(["c"]);
  });
});
