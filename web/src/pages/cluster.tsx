/** The cluster behind the log: what lacks replicas first; brokers, controller, moves and elections. */

import { useState } from "preact/hooks";
import * as api from "../api";
import { bytes, many, moment, zone } from "../format";
import { Act, Empty, FaultBox, LongTable, State, useLoaded } from "../parts/common";
import type { ClusterAbout, PartitionPlace } from "../types";
import { Broker } from "./broker";

export function Cluster() {
  const { value: state, fault } = useLoaded(api.cluster, [], 2000);
  if (!state) return fault ? <FaultBox fault={fault} /> : <Empty>Asking the log…</Empty>;
  const [only] = state.brokers;
  const { controller } = state;
  return (
    <>
      <h1>{state.brokers.length > 1 ? "Cluster" : "Broker"}</h1>
      {fault ? <FaultBox fault={fault} /> : null}
      {state.brokers.length > 1 ? (
        <>
          <p>
            {controller.id < 0 ? <b class="bad">no controller</b> : <>controller <a href={`#/cluster/${controller.id}`}>{controller.id}</a></>}
            {controller.epoch !== null ? `, epoch ${controller.epoch}, voters ${controller.voters.join(", ")}` : ""}
          </p>
          <Wrong state={state} />
          <BrokerTable state={state} />
          <Moving state={state} />
          <Topics state={state} />
          <Operate />
          <Happened state={state} />
        </>
      ) : null}
      {state.brokers.length === 1 && only ? <><p class="note">One broker, one copy of each record: an embedded log is lost with its disks, unless it is mirrored or backed up.</p><Broker id={only.id} /></> : null}
    </>
  );
}

/** What lacks something, worst first, with the broker that most of it misses. */
function Wrong({ state }: { state: ClusterAbout }) {
  const [suspect] = state.suspects;
  const kinds: [string, readonly PartitionPlace[]][] = [
    ["without a leader", state.offline],
    ["below min.insync.replicas", state.under_min_insync],
    ["under-replicated", state.under_replicated],
  ];
  if (kinds.every(([, places]) => !places.length) && !state.left_throttles && !state.flapping?.length) return <p class="good">Every partition has all its replicas in sync.</p>;
  return (
    <section aria-label="What is wrong">
      {kinds.map(([what, places]) => (places.length ? <p key={what} class="bad">{many(places.length, "partition")} {what}: <Places places={places} /></p> : null))}
      {suspect ? <p>Broker <a href={`#/cluster/${suspect.broker}`}>{suspect.broker}</a> is missing in {suspect.partitions} of them: look at it first.</p> : null}
      {state.flapping?.length ? <p class="bad">Replicas leave and come back: {state.flapping.map((each) => `${each.topic}/${each.partition} (${each.changes} times)`).join(", ")} in half an hour.</p> : null}
      {state.left_throttles ? <p class="bad">Replication is throttled though nothing moves: {state.throttles.map((each) => `${each.kind} ${each.name} ${each.setting} = ${each.value}`).join("; ")}</p> : null}
    </section>
  );
}

const SHOWN = 20;

function Places({ places }: { places: readonly PartitionPlace[] }) {
  const more = places.length - SHOWN;
  return <>{places.slice(0, SHOWN).map((each) => `${each.topic}/${each.partition}`).join(", ")}{more > 0 ? ` and ${more} more` : ""}</>;
}

function BrokerTable({ state }: { state: ClusterAbout }) {
  return (
    <LongTable
      name="Brokers"
      columns={["broker", "state", "address", "rack", "leaders", "replicas", "size"]}
      numbers={new Set(["leaders", "replicas", "size"])}
      items={state.brokers}
      identify={(broker) => String(broker.id)}
      values={(broker, column) => ({ broker: broker.id, state: broker.state, address: broker.address, rack: broker.rack, leaders: broker.leaders, replicas: broker.replicas, size: broker.bytes })[column]}
      cells={(broker) => (
        <>
          <td><a href={`#/cluster/${broker.id}`}>{broker.id}</a>{broker.id === state.controller.id ? " controller" : ""}</td>
          <td><State state={broker.state === "up" ? "running" : "failed"} /></td>
          <td>{broker.address}</td><td>{broker.rack ?? ""}</td>
          <td class="number">{broker.leaders}</td><td class="number">{broker.replicas}</td>
          <td class="number">{broker.bytes < 0 ? "–" : bytes(broker.bytes)}</td>
        </>
      )}
    />
  );
}

function Moving({ state }: { state: ClusterAbout }) {
  if (!state.moves.length) return null;
  return (
    <>
      <h2>Moves</h2>
      <LongTable name="Moves" columns={["partition", "to", "leaves", "done"]} numbers={new Set(["done"])} items={state.moves} identify={(move) => `${move.topic}/${move.partition}`}
        cells={(move) => (
          <>
            <td>{move.topic}/{move.partition}</td><td>{move.adding.join(", ")}</td><td>{move.removing.join(", ")}</td>
            <td class="number">{move.progress === null ? "–" : <><progress max="1" value={move.progress} aria-label={`${move.topic}/${move.partition}`} /> {Math.round(move.progress * 100)} %</>}</td>
          </>
        )} />
      <Act label="Cancel all moves" sure="Stop every move and go back to where the partitions were?" work={() => api.move({ topics: [], cancel: true }, true)} told={(done) => `${many(done.moves.length, "move")} cancelled.`} />
    </>
  );
}

function Topics({ state }: { state: ClusterAbout }) {
  const [wanted, setWanted] = useState("");
  const rows = state.topics.filter((topic) => topic.name.includes(wanted)).flatMap((topic) => topic.partitions.map((each) => ({ topic, each })));
  const lacking = (row: (typeof rows)[number]) => row.each.replicas.length - row.each.in_sync.length;
  rows.sort((a, b) => lacking(b) - lacking(a));
  return (
    <details>
      <summary>{many(state.topics.length, "topic")}, {many(state.topics.reduce((sum, topic) => sum + topic.partitions.length, 0), "partition")}</summary>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label>Find <input type="search" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} /></label>
      </form>
      <LongTable name="Partitions" columns={["partition", "leader", "epoch", "in sync", "missing", "eligible", "what it survives"]} items={rows} identify={({ topic, each }) => `${topic.name}/${each.partition}`}
        cells={({ topic, each }) => (
          <>
            <td>{topic.name}/{each.partition}</td>
            <td class={each.leader < 0 ? "bad" : ""}>{each.leader < 0 ? "none" : each.leader}{each.leader >= 0 && each.leader !== each.preferred ? ` (preferred ${each.preferred})` : ""}</td>
            <td>{each.leader_epoch}</td><td>{each.in_sync.join(", ")}</td>
            <td class="bad">{each.replicas.filter((replica) => !each.in_sync.includes(replica)).join(", ")}</td>
            <td>{each.eligible.join(", ")}</td><td class="note">{topic.survives}</td>
          </>
        )} />
    </details>
  );
}

const words = (text: string) => text.split(/[\s,]+/).filter(Boolean);
const numbers = (text: string) => words(text).map(Number);

/** Plans first; a plan that is shown can be carried out. */
function Operate() {
  const [topics, setTopics] = useState("");
  const [from, setFrom] = useState("");
  const [to, setTo] = useState("");
  const question: api.MoveQuestion = { topics: words(topics), ...(from ? { from: Number(from) } : {}), ...(to ? { to: numbers(to) } : {}) };
  return (
    <details>
      <summary>Move partitions, elect leaders</summary>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label>Topics <input placeholder="orders, clicks/3" value={topics} onInput={(event) => setTopics(event.currentTarget.value)} /></label>
        <label>Empty broker <input type="number" min="0" value={from} onInput={(event) => setFrom(event.currentTarget.value)} /></label>
        <label>To brokers <input placeholder="1, 2" value={to} onInput={(event) => setTo(event.currentTarget.value)} /></label>
      </form>
      <Act label="Plan the move" looks work={() => api.move(question, false)} told={(plan) => (
        <>
          <PlanTable name="Planned moves" rows={plan.moves.map((each) => [`${each.topic}/${each.partition}`, each.from.join(", "), each.to.join(", ")])} />
          {plan.moves.length ? <Act label="Move them" sure={`Move ${many(plan.moves.length, "partition")}? A throttle needs \`tailrace cluster move --throttle\`.`} work={() => api.move(question, true)} told={(done) => `${many(done.moves.length, "move")} begun.`} /> : null}
        </>
      )} />
      <Act label="Plan elections of preferred leaders" looks work={() => api.elect(words(topics), false)} told={(plan) => (
        <>
          <PlanTable name="Planned elections" rows={plan.elections.map((each) => [`${each.topic}/${each.partition}`, String(each.leader), String(each.preferred)])} />
          {plan.elections.length ? <Act label="Elect them" sure={`Elect ${many(plan.elections.length, "leader")}?`} work={() => api.elect(words(topics), true)} told={(done) => `${many(done.elections.length, "leader")} elected.`} /> : null}
        </>
      )} />
      <p class="note">Unclean elections lose records and are the command's alone: <code>tailrace cluster elect --unclean --accept-loss</code></p>
    </details>
  );
}

function PlanTable({ name, rows }: { name: string; rows: string[][] }) {
  if (!rows.length) return <p>Nothing to do.</p>;
  return (
    <LongTable name={name} columns={["partition", "now", "then"]} items={rows} identify={([place]) => place ?? ""}
      cells={(row) => row.map((text, index) => <td key={index}>{text}</td>)} />
  );
}

/** Elections, moves and replicas that left or came back, the newest first. */
function Happened({ state }: { state: ClusterAbout }) {
  if (!state.events?.length) return null;
  return (
    <>
      <h2>What happened</h2>
      <p class="note">Times are {zone()}.</p>
      <LongTable name="What happened" columns={["time", "partition", "event"]} items={state.events} identify={(event, index) => `${event.at}-${index}`}
        cells={(event) => (<><td>{moment(event.at)}</td><td>{event.topic ? `${event.topic}/${event.partition}` : "cluster"}</td><td>{event.text}</td></>)} />
    </>
  );
}
