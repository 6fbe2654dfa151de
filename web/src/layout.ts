/** Where each node of a drawing stands, left to right: dagre for what a person can see at
 * once, plain columns for hundreds of nodes (dagre would take seconds). */

import dagre from "@dagrejs/dagre";
import type { Graph, GraphNode } from "./types";

export interface Placed {
  node: GraphNode;
  x: number;
  y: number;
}

/** Where an edge runs, where it leaves its giver (`x`, `y`) and where it reaches its reader. */
export interface PlacedEdge {
  from: string;
  to: string;
  path: string;
  x: number;
  y: number;
  endX: number;
  endY: number;
  top: number;
  bottom: number;
}

export interface Layout {
  width: number;
  height: number;
  nodes: Placed[];
  edges: PlacedEdge[];
}

export const NODE_WIDTH = 204;
export const NODE_HEIGHT = 50;
export const MOST_FOR_DAGRE = 120;
const GAP = 96;
const COLUMN = NODE_WIDTH + GAP;
const LINE = NODE_HEIGHT + 12;
const MARGIN = 16;

export function layout(graph: Graph): Layout {
  return graph.nodes.length > MOST_FOR_DAGRE ? inColumns(graph) : byDagre(graph);
}

function byDagre(graph: Graph): Layout {
  const drawing = new dagre.graphlib.Graph();
  drawing.setGraph({ rankdir: "LR", nodesep: 14, ranksep: GAP, marginx: MARGIN, marginy: MARGIN });
  drawing.setDefaultEdgeLabel(() => ({}));
  for (const node of graph.nodes) drawing.setNode(node.name, { width: NODE_WIDTH, height: NODE_HEIGHT });
  for (const edge of graph.edges) drawing.setEdge(edge.from, edge.to);
  dagre.layout(drawing);
  const nodes = graph.nodes.map((node) => {
    const at = drawing.node(node.name);
    return { node, x: at.x - NODE_WIDTH / 2, y: at.y - NODE_HEIGHT / 2 };
  });
  const at = new Map(nodes.map((placed) => [placed.node.name, placed]));
  const edges = graph.edges.flatMap(({ from, to }) => {
    const [a, b] = [at.get(from), at.get(to)];
    if (!a || !b) return [];
    // Dagre gives a point between each two columns and one in each column that is passed;
    // only the latter say where there is room.
    const points: { x: number; y: number }[] = drawing.edge(from, to)?.points ?? [];
    return [joined(a, b, points.slice(1, -1).filter((_, index) => index % 2 === 1))];
  });
  const size = drawing.graph();
  return { width: size.width ?? 0, height: size.height ?? 0, nodes, edges };
}

function inColumns(graph: Graph): Layout {
  const inputs = new Map<string, string[]>();
  for (const { from, to } of graph.edges) inputs.set(to, [...(inputs.get(to) ?? []), from]);
  const places = new Map<string, { column: number; line: number }>();
  const filled: number[] = [];
  for (const node of graph.nodes) {
    // Nodes come with their inputs first, so the columns of those are known.
    const column = Math.max(-1, ...(inputs.get(node.name) ?? []).map((name) => places.get(name)?.column ?? -1)) + 1;
    const line = filled[column] ?? 0;
    filled[column] = line + 1;
    places.set(node.name, { column, line });
  }
  const nodes = graph.nodes.map((node) => {
    const { column, line } = places.get(node.name) ?? { column: 0, line: 0 };
    return { node, x: MARGIN + column * COLUMN, y: MARGIN + line * LINE };
  });
  const at = new Map(nodes.map((placed) => [placed.node.name, placed]));
  const edges = graph.edges.flatMap(({ from, to }) => {
    const [a, b] = [at.get(from), at.get(to)];
    return a && b ? [joined(a, b, [])] : [];
  });
  return { width: 2 * MARGIN + filled.length * COLUMN - GAP, height: 2 * MARGIN + Math.max(1, ...filled) * LINE, nodes, edges };
}

/** A smooth line from the right of `a` to the left of `b`, level where it passes a column. */
function joined(a: Placed, b: Placed, through: readonly { x: number; y: number }[]): PlacedEdge {
  const [x, y, endX, endY] = [a.x + NODE_WIDTH, a.y + NODE_HEIGHT / 2, b.x, b.y + NODE_HEIGHT / 2];
  let path = `M${at(x)},${at(y)}`;
  let [px, py] = [x, y];
  const curve = (toX: number, toY: number) => {
    const bend = Math.max(24, (toX - px) / 2);
    path += ` C${at(px + bend)},${at(py)} ${at(toX - bend)},${at(toY)} ${at(toX)},${at(toY)}`;
    [px, py] = [toX, toY];
  };
  for (const point of through) {
    curve(point.x - NODE_WIDTH / 2, point.y);
    px += NODE_WIDTH;
    path += ` H${at(px)}`;
  }
  curve(endX, endY);
  const heights = [y, endY, ...through.map((point) => point.y)];
  return { from: a.node.name, to: b.node.name, path, x, y, endX, endY, top: Math.min(...heights), bottom: Math.max(...heights) };
}

const at = (value: number) => Math.round(value * 10) / 10;

/** The nodes whose name holds `wanted`, with everything they are made from and that is made of them. */
export function around(graph: Graph, wanted: string): Graph {
  if (!wanted) return graph;
  const walk = (seen: Set<string>, start: string, next: Map<string, string[]>) => {
    const waiting = [start];
    for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
      seen.add(name);
      waiting.push(...(next.get(name) ?? []).filter((other) => !seen.has(other)));
    }
  };
  const down = new Map<string, string[]>();
  const up = new Map<string, string[]>();
  for (const { from, to } of graph.edges) {
    down.set(from, [...(down.get(from) ?? []), to]);
    up.set(to, [...(up.get(to) ?? []), from]);
  }
  const [readers, givers] = [new Set<string>(), new Set<string>()];
  for (const node of graph.nodes) {
    if (!node.label.includes(wanted)) continue;
    walk(readers, node.name, down);
    walk(givers, node.name, up);
  }
  const chosen = new Set([...readers, ...givers]);
  return {
    nodes: graph.nodes.filter((node) => chosen.has(node.name)),
    edges: graph.edges.filter((edge) => chosen.has(edge.from) && chosen.has(edge.to)),
  };
}
