/** A drawing of nodes and edges. Of a large one only what is in sight is in the page. */

import { useMemo, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { layout, MOST_FOR_DAGRE, NODE_HEIGHT, NODE_WIDTH, type Placed, type PlacedEdge } from "../layout";
import type { Graph } from "../types";

const BEYOND = 400;
/** A drawing is made smaller to fit the page, but not so small that it cannot be read. */
const SMALLEST = 0.85;

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
  const size = large
    ? { width: placed.width, height: placed.height }
    : { style: { width: "100%", height: "auto", maxWidth: `${placed.width}px`, minWidth: `${Math.round(placed.width * SMALLEST)}px` } };
  return (
    <section aria-label={label} class={large ? "scroll drawn tall" : "scroll drawn"} ref={box} tabIndex={0} onScroll={large ? (event) => setTop(event.currentTarget.scrollTop) : undefined}>
      <svg {...size} viewBox={`0 0 ${placed.width} ${placed.height}`} class="topology" role="group" aria-label={`${label}: ${graph.nodes.length} nodes`}>
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
      <rect width={NODE_WIDTH} height={NODE_HEIGHT} rx="9" />
      <rect class="stripe" x="0" y="9" width="4" height={NODE_HEIGHT - 18} rx="2" />
      <text x="14" y="21" class="node-name">{shorten(name)}</text>
      <text x="14" y="39" class="node-figure" data-live={node.label}>{figure}</text>
      {state ? <circle class="lamp" cx={NODE_WIDTH - 12} cy={NODE_HEIGHT - 15} r="3.5" /> : null}
    </g>
  );
}

export function shorten(text: string): string {
  return text.length > 23 ? `${text.slice(0, 9)}…${text.slice(-12)}` : text;
}
