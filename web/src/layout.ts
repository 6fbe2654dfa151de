/** Where each node of the topology stands: dagre, left to right. */

import dagre from "@dagrejs/dagre";
import type { Graph, GraphNode } from "./types";

export interface Placed {
  node: GraphNode;
  x: number;
  y: number;
}

export interface Layout {
  width: number;
  height: number;
  nodes: Placed[];
  edges: { from: string; to: string; path: string; x: number; y: number }[];
}

export const NODE_WIDTH = 190;
export const NODE_HEIGHT = 54;

export function layout(graph: Graph): Layout {
  const drawing = new dagre.graphlib.Graph();
  drawing.setGraph({ rankdir: "LR", nodesep: 16, ranksep: 70, marginx: 12, marginy: 12 });
  drawing.setDefaultEdgeLabel(() => ({}));
  for (const node of graph.nodes) drawing.setNode(node.name, { width: NODE_WIDTH, height: NODE_HEIGHT });
  for (const edge of graph.edges) drawing.setEdge(edge.from, edge.to);
  dagre.layout(drawing);
  const nodes = graph.nodes.map((node) => {
    const at = drawing.node(node.name);
    return { node, x: at.x - NODE_WIDTH / 2, y: at.y - NODE_HEIGHT / 2 };
  });
  const edges = graph.edges.map(({ from, to }) => {
    const points = drawing.edge(from, to)?.points ?? [];
    const path = points.map((p: { x: number; y: number }, i: number) => `${i ? "L" : "M"}${p.x.toFixed(1)},${p.y.toFixed(1)}`).join(" ");
    const middle = points[Math.floor(points.length / 2)] ?? { x: 0, y: 0 };
    return { from, to, path, x: middle.x, y: middle.y };
  });
  const size = drawing.graph();
  return { width: size.width ?? 0, height: size.height ?? 0, nodes, edges };
}
