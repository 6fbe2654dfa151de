/** The live topology, the parts, the alarms. */

import { useMemo } from "preact/hooks";
import * as api from "../api";
import { age, count, rate } from "../format";
import { layout, NODE_HEIGHT, NODE_WIDTH } from "../layout";
import { live } from "../live";
import { Demo } from "../parts/demo";
import { AlarmBox, Empty, FaultBox, State, useLoaded } from "../parts/common";
import type { GraphNode, Live, Part } from "../types";

export function Overview() {
  const { value: graph, fault } = useLoaded(api.graph, [], 30_000);
  const state = live.value;
  const placed = useMemo(() => (graph ? layout(graph) : null), [graph]);
  if (fault) return <FaultBox fault={fault} />;
  if (!placed || !state) return <Empty>Waiting for the first figures…</Empty>;
  return (
    <>
      {state.alarms.map((alarm) => <AlarmBox alarm={alarm} key={alarm.what + alarm.message} />)}
      <section aria-label="Topology" class="scroll">
        {placed.nodes.length === 0 ? <Empty>This project declares nothing yet.</Empty> : null}
        <svg width={placed.width} height={placed.height} class="topology" role="img" aria-label="what feeds what">
          {placed.edges.map((edge) => {
            const figure = edgeFigure(state, edge.from);
            return (
              <g key={`${edge.from}→${edge.to}`}>
                <path d={edge.path} class={figure && figure.rate > 0 ? "edge flowing" : "edge"} />
                {figure && figure.rate > 0 ? <text x={edge.x} y={edge.y - 5} class="edge-label">{rate(figure.rate)}</text> : null}
              </g>
            );
          })}
          {placed.nodes.map(({ node, x, y }) => (
            <a href={link(node)} key={node.name} aria-label={`${node.kind} ${node.label}`}>
              <g transform={`translate(${x},${y})`} data-node={node.label} class={`node node-${node.kind} ${nodeState(state, node)}`}>
                <rect width={NODE_WIDTH} height={NODE_HEIGHT} rx="8" />
                <text x="12" y="21" class="node-name">{shorten(node.label)}</text>
                <text x="12" y="41" class="node-figure" data-live={node.label}>{nodeFigure(state, node)}</text>
              </g>
            </a>
          ))}
        </svg>
      </section>
      {state.demo ? <Demo /> : null}
      <h2>Parts</h2>
      <div class="cards">
        {state.parts.map((part) => <PartCard part={part} key={`${part.kind}-${part.name}`} />)}
      </div>
    </>
  );
}

export function PartCard({ part }: { part: Part }) {
  return (
    <article class="card">
      <header>
        <span class="kind">{part.kind}</span> <a href={`#/parts/${encodeURIComponent(`${part.kind}-${part.name}`)}`}><strong>{part.name}</strong></a> <State state={part.state} />
      </header>
      <dl>
        <dt>fresh</dt>
        <dd>{age(part.freshness_ms)}</dd>
        <dt>lag</dt>
        <dd>{count(part.lag)}</dd>
        <dt>process</dt>
        <dd>{part.pid ?? "–"}</dd>
      </dl>
      {part.error ? <FaultBox fault={part.error} /> : null}
    </article>
  );
}

function partOf(state: Live, node: GraphNode): Part | undefined {
  const [kind, name] =
    node.kind === "source" ? ["source", node.label]
    : node.kind === "sink" ? ["sink", node.name.replace(/^sink:/, "")]
    : node.kind === "view" ? ["views", state.project]
    : node.kind === "stream" ? ["pipelines", state.project]
    : ["broker", "log"];
  return state.parts.find((part) => part.kind === kind && part.name === name);
}

function nodeState(state: Live, node: GraphNode): string {
  const part = partOf(state, node);
  return part ? `part-${part.state}` : "";
}

function nodeFigure(state: Live, node: GraphNode): string {
  const topic = state.topics.find((candidate) => candidate.name === node.name);
  if (topic) return `${count(topic.records)} records · ${rate(topic.rate)}`;
  const part = partOf(state, node);
  if (!part) return "";
  if (typeof part.freshness_ms === "number") return `${part.state} · ${age(part.freshness_ms)} fresh`;
  return part.state;
}

function edgeFigure(state: Live, from: string) {
  return state.topics.find((topic) => topic.name === from);
}

function link(node: GraphNode): string {
  if (node.kind === "view") return `#/views/${encodeURIComponent(node.name)}`;
  if (node.kind === "source") return `#/parts/${encodeURIComponent(`source-${node.label}`)}`;
  if (node.kind === "sink") return `#/parts/${encodeURIComponent(node.name.replace(/^sink:/, "sink-"))}`;
  return `#/topics/${encodeURIComponent(node.name)}`;
}

function shorten(text: string): string {
  return text.length > 22 ? `${text.slice(0, 9)}…${text.slice(-12)}` : text;
}
