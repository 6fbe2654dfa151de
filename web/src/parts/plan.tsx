/** How a view is kept up to date: its operators as a picture, and what they keep. */

import { useMemo, useState } from "preact/hooks";
import * as api from "../api";
import { bytes, count } from "../format";
import type { Graph, Plan, Sizes } from "../types";
import { Act, useLoaded } from "./common";
import { NODE_HEIGHT } from "../layout";
import { Box, Drawing, shorten } from "./drawing";

export function PlanOf({ name }: { name: string }) {
  const { value: plan } = useLoaded(() => api.plan(name).catch(() => null), [name]);
  const { value: words } = useLoaded(() => api.explain(name).catch(() => null), [name]);
  const [sizes, setSizes] = useState<Sizes | null>(null);
  if (!plan && !words) return null;
  return (
    <details open>
      <summary>How it is kept up to date</summary>
      {plan ? <Picture plan={plan} sizes={sizes} /> : null}
      {plan ? (
        <Act label="Measure the state" looks work={() => api.sizes(name).then((found) => { setSizes(found); return found; })}
          told={(found) => `${count(sum(found, "rows"))} rows, ${bytes(sum(found, "bytes"))} at tick ${found.tick}.`} />
      ) : null}
      {words ? <details><summary>In words</summary><pre>{words.text}</pre></details> : null}
    </details>
  );
}

function Picture({ plan, sizes }: { plan: Plan; sizes: Sizes | null }) {
  const graph = useMemo<Graph>(() => ({
    nodes: plan.nodes.map((node) => ({ name: node.id, kind: node.kind === "table" ? "table" : node.kind === "result" ? "sink" : "view", label: node.what })),
    edges: plan.edges,
  }), [plan]);
  const kinds = new Map(plan.nodes.map((node) => [node.id, node]));
  const kept = new Map(sizes?.operators.map((operator) => [operator.id, operator]));
  const filters = new Map(plan.edges.map((edge) => [`${edge.from}→${edge.to}`, edge.where]));
  return (
    <Drawing
      graph={graph}
      label={`Operators of ${plan.view}`}
      node={(placed) => {
        const node = kinds.get(placed.node.name);
        const size = kept.get(placed.node.name);
        const name = node?.kind === "table" ? node.what : node?.kind ?? "";
        const figure = size ? `${count(size.rows)} rows · ${bytes(size.bytes)}` : node?.kind === "table" ? "table" : shorten(node?.what ?? "");
        return <Box placed={placed} name={name} figure={figure} hover={node?.what} />;
      }}
      edge={(edge) => {
        const where = filters.get(`${edge.from}→${edge.to}`);
        return (
          <>
            <path d={edge.path} class="edge" />
            {where ? <text x={edge.x - 4} y={edge.y + NODE_HEIGHT / 2 + 11} class="edge-label end"><title>{where}</title>where {shorten(where)}</text> : null}
          </>
        );
      }}
    />
  );
}

function sum(sizes: Sizes, of: "rows" | "bytes"): number {
  return sizes.operators.reduce((total, operator) => total + operator[of], 0);
}
