/** The live topology, the parts, the alarms. */

import { useMemo, useState } from "preact/hooks";
import * as api from "../api";
import { age, count, rate } from "../format";
import { around, MOST_FOR_DAGRE } from "../layout";
import { live } from "../live";
import { Demo } from "../parts/demo";
import { Box, Drawing } from "../parts/drawing";
import { AlarmBox, Empty, FaultBox, State, useLoaded } from "../parts/common";
import type { Graph, GraphNode, Live, Part } from "../types";

export function Overview() {
  const { value: graph, fault } = useLoaded(api.graph, [], 30_000);
  const [wanted, setWanted] = useState("");
  const state = live.value;
  const text = JSON.stringify(graph);
  const chosen = useMemo(() => (graph ? around(graph, wanted) : null), [text, wanted]);
  if (fault) return <FaultBox fault={fault} />;
  if (!graph || !chosen || !state) return <Empty>Waiting for the first figures…</Empty>;
  const known = new Known(state, graph);
  return (
    <>
      {state.alarms.slice(0, 5).map((alarm) => <AlarmBox alarm={alarm} key={alarm.what + alarm.message} />)}
      {state.alarms.length > 5 ? <p><a href="#/alarms">{state.alarms.length - 5} more alarms</a></p> : null}
      {graph.nodes.length > 12 ? (
        <form class="filters" onSubmit={(event) => event.preventDefault()}>
          <label>Find <input type="search" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} /></label>
          {graph.nodes.length > MOST_FOR_DAGRE ? <span class="note">{chosen.nodes.length} of {graph.nodes.length} nodes</span> : null}
        </form>
      ) : null}
      {chosen.nodes.length === 0 ? <Empty>{wanted ? `Nothing is called “${wanted}”.` : "This project declares nothing yet."}</Empty> : (
        <Drawing
          graph={chosen}
          label="Topology"
          node={(placed) => (
            <a href={link(placed.node)} aria-label={`${placed.node.kind} ${placed.node.label}`}>
              <Box placed={placed} name={placed.node.label} figure={known.figure(placed.node)} state={known.state(placed.node)} />
            </a>
          )}
          edge={(edge) => {
            const flow = known.flow(edge.from);
            const held = known.held(edge.to);
            return (
              <>
                <path d={edge.path} class={`edge ${flow > 0 ? "flowing" : ""} ${held ? "held" : ""}`} />
                {flow > 0 || held ? <text x={edge.x} y={edge.y - 5} class={held ? "edge-label held" : "edge-label"}>{held || rate(flow)}</text> : null}
              </>
            );
          }}
        />
      )}
      <p class="note"><span class="key flowing" /> moving <span class="key held" /> the reader is behind</p>
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
        <span class="kind">{part.kind}</span> <a href={partLink(part.kind, part.name)}><strong>{part.name}</strong></a> <State state={part.state} />
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

export function partLink(kind: string, name: string): string {
  if (kind === "source") return `#/sources/${encodeURIComponent(name)}`;
  if (kind === "sink") return `#/sinks/${encodeURIComponent(name)}`;
  if (kind === "pipelines") return "#/pipelines";
  return `#/parts/${encodeURIComponent(`${kind}-${name}`)}`;
}

const BEHIND_MS = 5000;

/** What is known of the nodes now, looked up once for all of them. */
class Known {
  private readonly topics;
  private readonly parts;
  private readonly nodes;
  private readonly pressed;

  constructor(private readonly now: Live, graph: Graph) {
    this.topics = new Map(now.topics.map((topic) => [topic.name, topic]));
    this.parts = new Map(now.parts.map((part) => [`${part.kind} ${part.name}`, part]));
    this.pressed = new Map(now.groups.flatMap((group) => (group.holds_back ?? []).map((topic) => [topic, group.name] as const)));
    this.nodes = new Map(graph.nodes.map((node) => [node.name, node]));
  }

  part(node: GraphNode): Part | undefined {
    const [kind, name] =
      node.kind === "source" ? ["source", node.label]
      : node.kind === "sink" ? ["sink", node.name.replace(/^sink:/, "")]
      : node.kind === "view" || node.kind === "stream" ? ["pipelines", this.now.project]
      : ["broker", "log"];
    return this.parts.get(`${kind} ${name}`);
  }

  state(node: GraphNode): string {
    const part = this.part(node);
    return part ? `part-${part.state}` : "";
  }

  figure(node: GraphNode): string {
    const topic = this.topics.get(node.name);
    if (topic) return `${count(topic.records)} records · ${rate(topic.rate)}`;
    const part = this.part(node);
    if (!part) return "";
    if (typeof part.freshness_ms === "number") return `${part.state} · ${age(part.freshness_ms)} fresh`;
    return part.state;
  }

  flow(name: string): number {
    return this.topics.get(name)?.rate ?? 0;
  }

  /** Why the reader of an edge holds it up; empty while it keeps up. */
  held(name: string): string {
    const node = this.nodes.get(name);
    const group = this.pressed.get(name);
    if (group) return `waits for ${group}`;
    const part = node && (node.kind === "table" || node.kind === "topic" ? undefined : this.part(node));
    if (!part) return "";
    if (part.state === "stopped" || part.state === "failed") return "stopped";
    if ((part.lag ?? 0) > 0) return `${count(part.lag)} behind`;
    if (part.state === "lagging") return "waiting";
    return (part.freshness_ms ?? 0) > BEHIND_MS ? `${age(part.freshness_ms)} behind` : "";
  }
}

function link(node: GraphNode): string {
  if (node.kind === "view") return `#/views/${encodeURIComponent(node.name)}`;
  if (node.kind === "stream") return `#/pipelines/${encodeURIComponent(node.name)}`;
  if (node.kind === "source") return partLink("source", node.label);
  if (node.kind === "sink") return partLink("sink", node.name.replace(/^sink:/, ""));
  return `#/topics/${encodeURIComponent(node.name)}`;
}
