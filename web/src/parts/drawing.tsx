/** A drawing of nodes and edges. Of a large one only what is in sight is in the page. */

import { useMemo, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { layout, MOST_FOR_DAGRE, NODE_HEIGHT, NODE_WIDTH, type Placed, type PlacedEdge } from "../layout";
import type { Graph } from "../types";

const BEYOND = 400;

export function Drawing({ graph, label, node, edge }: {
  graph: Graph;
  label: string;
  node: (placed: Placed) => ComponentChildren;
  edge: (placed: PlacedEdge) => ComponentChildren;
}) {
  const placed = useMemo(() => layout(graph), [graph]);
  const [top, setTop] = useState(0);
  const box = useRef<HTMLElement>(null);
  const large = graph.nodes.length > MOST_FOR_DAGRE;
  const from = top - BEYOND;
  const to = top + (box.current?.clientHeight ?? 800) + BEYOND;
  const nodes = large ? placed.nodes.filter(({ y }) => y > from && y < to) : placed.nodes;
  const edges = large ? placed.edges.filter((one) => one.bottom > from && one.top < to) : placed.edges;
  return (
    <section aria-label={label} class={large ? "scroll tall" : "scroll"} ref={box} tabIndex={0} onScroll={large ? (event) => setTop(event.currentTarget.scrollTop) : undefined}>
      <svg width={placed.width} height={placed.height} class="topology" role="group" aria-label={`${label}: ${graph.nodes.length} nodes`}>
        {edges.map((one) => <g key={`${one.from}→${one.to}`}>{edge(one)}</g>)}
        {nodes.map((one) => <g key={one.node.name}>{node(one)}</g>)}
      </svg>
    </section>
  );
}

export function Box({ placed, name, figure, state, hover }: { placed: Placed; name: string; figure: string; state?: string; hover?: string }) {
  const { node, x, y } = placed;
  return (
    <g transform={`translate(${x},${y})`} data-node={node.label} class={`node node-${node.kind} ${state ?? ""}`}>
      <title>{hover ?? node.label}</title>
      <rect width={NODE_WIDTH} height={NODE_HEIGHT} rx="8" />
      <text x="12" y="21" class="node-name">{shorten(name)}</text>
      <text x="12" y="41" class="node-figure" data-live={node.label}>{figure}</text>
    </g>
  );
}

export function shorten(text: string): string {
  return text.length > 21 ? `${text.slice(0, 8)}…${text.slice(-11)}` : text;
}
