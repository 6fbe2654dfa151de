/** Where each node of a drawing stands, left to right: dagre for what a person can see at
 * once, plain columns for hundreds of nodes (dagre would take seconds). */

import dagre from "@dagrejs/dagre";
import type { Graph, GraphNode } from "./types";

export interface Placed {
  node: GraphNode;
  x: number;
  y: number;
}

export interface PlacedEdge {
  from: string;
  to: string;
  path: string;
  x: number;
  y: number;
  top: number;
  bottom: number;
}

export interface Layout {
  width: number;
  height: number;
  nodes: Placed[];
  edges: PlacedEdge[];
}

export const NODE_WIDTH = 190;
export const NODE_HEIGHT = 54;
export const MOST_FOR_DAGRE = 120;
const COLUMN = NODE_WIDTH + 90;
const LINE = NODE_HEIGHT + 12;
const MARGIN = 12;

export function layout(graph: Graph): Layout {
  return graph.nodes.length > MOST_FOR_DAGRE ? inColumns(graph) : byDagre(graph);
}

function byDagre(graph: Graph): Layout {
  const drawing = new dagre.graphlib.Graph();
  drawing.setGraph({ rankdir: "LR", nodesep: 16, ranksep: 70, marginx: MARGIN, marginy: MARGIN });
  drawing.setDefaultEdgeLabel(() => ({}));
  for (const node of graph.nodes) drawing.setNode(node.name, { width: NODE_WIDTH, height: NODE_HEIGHT });
  for (const edge of graph.edges) drawing.setEdge(edge.from, edge.to);
  dagre.layout(drawing);
  const nodes = graph.nodes.map((node) => {
    const at = drawing.node(node.name);
    return { node, x: at.x - NODE_WIDTH / 2, y: at.y - NODE_HEIGHT / 2 };
  });
  const edges = graph.edges.map(({ from, to }) => {
    const points: { x: number; y: number }[] = drawing.edge(from, to)?.points ?? [];
    const path = points.map((p, i) => `${i ? "L" : "M"}${p.x.toFixed(1)},${p.y.toFixed(1)}`).join(" ");
    const middle = points[Math.floor(points.length / 2)] ?? { x: 0, y: 0 };
    const heights = points.map((p) => p.y);
    return { from, to, path, x: middle.x, y: middle.y, top: Math.min(...heights), bottom: Math.max(...heights) };
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
    const a = at.get(from);
    const b = at.get(to);
    if (!a || !b) return [];
    const [x1, y1, x2, y2] = [a.x + NODE_WIDTH, a.y + NODE_HEIGHT / 2, b.x, b.y + NODE_HEIGHT / 2];
    const bend = Math.max(30, (x2 - x1) / 2);
    const path = `M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`;
    return [{ from, to, path, x: (x1 + x2) / 2, y: (y1 + y2) / 2, top: Math.min(y1, y2), bottom: Math.max(y1, y2) }];
  });
  return { width: filled.length * COLUMN, height: 2 * MARGIN + Math.max(1, ...filled) * LINE, nodes, edges };
}

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
