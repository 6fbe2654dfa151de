/** The live topology, the parts, the alarms. */

import { useMemo, useState } from "preact/hooks";
import * as api from "../api";
import { age, bytes, count, rate } from "../format";
import { around, MOST_FOR_DAGRE } from "../layout";
import { live, viewFault } from "../live";
import { Demo } from "../parts/demo";
import { Box, Drawing } from "../parts/drawing";
import { AlarmBox, Empty, FaultBox, Spark, State, useLoaded } from "../parts/common";
import type { Graph, GraphNode, Live, Part } from "../types";

const NOTHING_YET: Live = { at: 0, project: "", ready: false, demo: false, parts: [], topics: [], groups: [], alarms: [] };

export function Overview() {
  const { value: graph, fault } = useLoaded(api.graph, [], 30_000);
  const [wanted, setWanted] = useState("");
  const state = live.value ?? NOTHING_YET;
  const text = JSON.stringify(graph);
  const chosen = useMemo(() => (graph ? around(graph, wanted) : null), [text, wanted]);
  if (fault) return <FaultBox fault={fault} />;
  if (!graph || !chosen) return <Empty>Waiting for the first figures…</Empty>;
  const known = new Known(state, graph);
  const labelled = firsts(chosen);
  return (
    <>
      <h1 class="unseen">Overview of {state.project}</h1>
      {live.value ? <Headline state={state} /> : null}
      {state.alarms.slice(0, 5).map((alarm) => <AlarmBox alarm={alarm} key={alarm.what + alarm.message} />)}
      {state.alarms.length > 5 ? <p><a href="#/alarms">{state.alarms.length - 5} more alarms</a></p> : null}
      {state.demo ? <Demo /> : null}
      {graph.nodes.length > 12 ? (
        <form class="filters" onSubmit={(event) => event.preventDefault()}>
          <label>Find <input type="search" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} /></label>
          {wanted || graph.nodes.length > MOST_FOR_DAGRE ? <span class="note">{chosen.nodes.length} of {graph.nodes.length} nodes{wanted ? <> <button type="button" class="quiet" onClick={() => setWanted("")}>show all</button></> : null}</span> : null}
        </form>
      ) : null}
      {chosen.nodes.length === 0 ? <Empty>{wanted ? `Nothing is called “${wanted}”.` : <>This project declares nothing yet. Put a source and a <code>tr.view(…)</code> into <code>pipelines/</code>, then start it again.</>}</Empty> : (
        <Drawing
          graph={chosen}
          label="Topology"
          node={(placed) => (
            <a href={link(placed.node)}>
              <Box placed={placed} hover={`${placed.node.kind} ${placed.node.label}`} name={placed.node.label} figure={known.figure(placed.node)} state={known.state(placed.node)} />
            </a>
          )}
          edge={(edge) => {
            const flow = known.flow(edge.from, edge.to);
            const held = known.held(edge.to);
            const fresh = known.fresh(edge.to);
            const id = `${edge.from}→${edge.to}`;
            return (
              <g data-edge={id}>
                <title>{`${edge.from} → ${edge.to}: ${rate(flow)}${fresh ? `, latency ${fresh}` : ""}${held ? `, ${held}` : ""}`}</title>
                <path d={edge.path} class={`edge ${flow > 0 ? "flowing" : ""} ${held ? "held" : ""}`} style={{ strokeWidth: thickness(flow) }} />
                {flow > 0 && labelled.leaving.has(id) ? <text x={edge.x + 6} y={edge.y - 5} class="edge-label">{rate(flow)}</text> : null}
                {labelled.arriving.has(id) && (held || fresh) ? <text x={edge.endX - 6} y={edge.endY - 5} class={held ? "edge-label end held" : "edge-label end"}>{held || fresh}</text> : null}
              </g>
            );
          }}
        />
      )}
      <p class="legend">
        <span class="node-source"><i />source</span> <span class="node-table"><i />topic</span> <span class="node-view"><i />view or stream</span> <span class="node-sink"><i />sink</span>
        <span><span class="key" />records a second</span> <span><span class="key held" />the reader is behind</span>
      </p>
      <h2>Parts</h2>
      <div class="cards">
        {state.parts.map((part) => <PartCard part={part} key={`${part.kind}-${part.name}`} />)}
      </div>
    </>
  );
}

/** The whole in five figures. */
function Headline({ state }: { state: Live }) {
  const own = state.topics.filter((topic) => !topic.internal);
  const sources = new Set(state.parts.filter((part) => part.kind === "source").map((part) => part.name));
  const captured = own.filter((topic) => { const [source = "", , table] = topic.name.split("."); return sources.has(source) && table !== undefined; });
  const pipelines = state.parts.find((part) => part.kind === "pipelines");
  const copies = state.parts.filter((part) => part.kind === "sink");
  const running = copies.filter((part) => part.state === "running").length;
  const slowest = Math.max(0, ...copies.map((part) => part.freshness_ms ?? 0));
  return (
    <dl class="headline">
      {sources.size ? <div><dt>changes captured</dt><dd data-live="all:captured">{rate(captured.reduce((sum, topic) => sum + topic.rate, 0))}</dd><dd class="about">{rate(own.reduce((sum, topic) => sum + topic.rate, 0))} records into the log</dd></div>
        : <div><dt>records into the log</dt><dd data-live="all:rate">{rate(own.reduce((sum, topic) => sum + topic.rate, 0))}</dd><dd><Spark series="all:rate" /></dd></div>}
      {pipelines ? <div><dt>views behind the database</dt><dd data-live="all:freshness">{age(pipelines.freshness_ms)}</dd><dd><Spark series={`part:pipelines-${pipelines.name}`} /></dd></div> : null}
      {copies.length ? <div><dt>sinks in step</dt><dd data-live="all:copies">{running} <small>of {copies.length}</small></dd><dd class="about">slowest {age(slowest)} late</dd></div> : null}
      <div><dt>kept in the log</dt><dd data-live="all:bytes">{bytes(state.topics.reduce((sum, topic) => sum + (topic.bytes ?? 0), 0))}</dd><dd class="about">{count(own.reduce((sum, topic) => sum + topic.records, 0))} records, {own.length} topics</dd></div>
      <div><dt>alarms</dt><dd class={state.alarms.length ? "bad" : "good"}>{state.alarms.length || "none"}</dd><dd class="about">{state.alarms.length ? <a href="#/alarms">what to do</a> : "nothing deserves attention"}</dd></div>
    </dl>
  );
}

/** Edges that carry a label: what a node gives is the same on all its edges, and what a
 * reader says of itself too; one label each is enough. */
function firsts(graph: Graph): { leaving: Set<string>; arriving: Set<string> } {
  const [leaving, arriving] = [new Map<string, string>(), new Map<string, string>()];
  for (const { from, to } of graph.edges) {
    const id = `${from}→${to}`;
    const key = from.startsWith("source:") ? id : from; // a source gives each table its own
    if (!leaving.has(key)) leaving.set(key, id);
    if (!arriving.has(to)) arriving.set(to, id);
  }
  return { leaving: new Set([...leaving.values()].filter((id) => !id.startsWith("source:"))), arriving: new Set(arriving.values()) };
}

const thickness = (flow: number) => Math.min(5, 1.5 + Math.log10(1 + flow) * 1.1).toFixed(2);

export function PartCard({ part }: { part: Part }) {
  return (
    <article class="card">
      <header>
        <span class="kind">{part.kind}</span> <State state={part.state} /> <a href={partLink(part.kind, part.name)}><strong>{part.name}</strong></a>
      </header>
      <dl>
        <dt>latency</dt>
        <dd>{age(part.freshness_ms)}</dd>
        <dt>lag</dt>
        <dd>{count(part.lag)}</dd>
        <dt>pid</dt>
        <dd>{part.pid ?? "–"}</dd>
      </dl>
      {part.error ? <FaultBox fault={part.error} /> : null}
    </article>
  );
}

export function partLink(kind: string, name: string): string {
  if (kind === "source") return `#/sources/${encodeURIComponent(name)}`;
  if (kind === "mirror") return `#/mirrors/${encodeURIComponent(name)}`;
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
      : node.kind === "mirror" ? ["mirror", node.label]
      : node.kind === "sink" ? ["sink", node.name.replace(/^sink:/, "")]
      : node.kind === "connector" ? ["connect", "connect"]
      : node.kind === "view" || node.kind === "stream" || node.kind === "pattern" || node.kind === "percolation" ? ["pipelines", this.now.project]
      : ["broker", "log"];
    return this.parts.get(`${kind} ${name}`);
  }

  /** How a connector is, told by the worker that runs it. */
  connector(node: GraphNode): string | undefined {
    return node.kind === "connector" ? this.part(node)?.connector_states?.[node.label] : undefined;
  }

  state(node: GraphNode): string {
    if (viewFault(this.now, node.name)) return "part-failed";
    const connector = this.connector(node);
    if (connector) return `part-${connector}`;
    const part = this.part(node);
    return part ? `part-${part.state}` : "";
  }

  figure(node: GraphNode): string {
    if (viewFault(this.now, node.name)) return "suspended";
    const topic = this.topics.get(node.name);
    if (topic) return `${count(topic.records)} records, ${rate(topic.rate)}`;
    const connector = this.connector(node);
    if (connector) return connector;
    const part = this.part(node);
    if (!part) return "…";
    if (typeof part.freshness_ms === "number") return `${part.state}, ${age(part.freshness_ms)} behind`;
    return part.state;
  }

  /** Records a second on an edge: what its giver writes, or a source writes to its table. */
  flow(from: string, to: string): number {
    return (this.topics.get(from) ?? (from.startsWith("source:") ? this.topics.get(to) : undefined))?.rate ?? 0;
  }

  /** How far behind the reader of an edge is, in its own words; empty for what is only kept. */
  fresh(name: string): string {
    const node = this.nodes.get(name);
    const part = node && (node.kind === "table" || node.kind === "topic" ? undefined : this.part(node));
    if (node?.kind === "view" || node?.kind === "stream") return ""; // all views share a tick: said once, above
    return typeof part?.freshness_ms === "number" ? age(part.freshness_ms) : "";
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
  if (node.kind === "percolation") return `#/percolations/${encodeURIComponent(node.name)}`;
  if (node.kind === "pattern") return `#/patterns/${encodeURIComponent(node.name)}`;
  if (node.kind === "stream") return `#/pipelines/${encodeURIComponent(node.name)}`;
  if (node.kind === "source") return partLink("source", node.label);
  if (node.kind === "mirror") return partLink("mirror", node.label);
  if (node.kind === "connector") return partLink("connect", "connect");
  if (node.kind === "cluster") return "#/mirrors";
  if (node.kind === "sink") return partLink("sink", node.name.replace(/^sink:/, ""));
  return `#/topics/${encodeURIComponent(node.name)}`;
}
