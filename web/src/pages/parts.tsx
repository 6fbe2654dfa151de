/** One part with everything it reports; and what deserves attention. */

import * as api from "../api";
import { age, cell, many, moment, zone } from "../format";
import { live } from "../live";
import { AlarmBox, Chart, Empty, FaultBox, LongTable, State, useLoaded } from "../parts/common";

const SHOWN_ELSEWHERE = new Set(["name", "kind", "project", "state", "error", "at"]);

export function PartPage({ id }: { id: string }) {
  const part = live.value?.parts.find((candidate) => `${candidate.kind}-${candidate.name}` === id);
  if (!live.value) return <Empty>Waiting for the first figures…</Empty>;
  if (!part) return <Empty>No such part runs.</Empty>;
  const facts = Object.entries(part).filter(([name]) => !SHOWN_ELSEWHERE.has(name));
  return (
    <>
      <h1>{part.kind} {part.name} <State state={part.state} /></h1>
      {part.error ? <FaultBox fault={part.error} /> : null}
      {typeof part.freshness_ms === "number" ? (
        <>
          <p>latency {age(part.freshness_ms)}, lag {many(part.lag ?? 0, "record")}</p>
          <Chart series={`part:${id}`} label="latency" unit={age} />
        </>
      ) : null}
      <dl class="settings">
        {facts.map(([name, value]) => (
          <div key={name}><dt>{name.replaceAll("_", " ")}</dt><dd data-live={`${id}:${name}`}>{cell(value)}</dd></div>
        ))}
      </dl>
      <p class="note">{commands(part.kind, part.name).map((command) => <code key={command}>{command} </code>)}</p>
    </>
  );
}

export function Alarms() {
  const state = live.value;
  if (!state) return <Empty>Waiting for the first figures…</Empty>;
  return (
    <>
      <h1>Alarms</h1>
      {state.alarms.length === 0 ? <Empty>Nothing deserves attention. Watched are: parts that end or wait, groups near the end of retention, WAL kept for a slot, late rows, dead letters and the disk.</Empty> : null}
      {state.alarms.map((alarm) => <AlarmBox alarm={alarm} key={alarm.what + alarm.message} />)}
      <Happened />
    </>
  );
}

/** What happened to the parts, the newest first. */
function Happened() {
  const { value } = useLoaded(api.events, [], 3000);
  if (!value?.events.length) return null;
  return (
    <>
      <h2>What happened</h2>
      <p class="note">Times are {zone()}.</p>
      <LongTable name="What happened" columns={["time", "part", "event"]} items={value.events} identify={(event, index) => `${event.at}-${index}`}
        cells={(event) => (<><td>{moment(event.at)}</td><td>{event.part || "project"}</td><td class={event.what === "ended" || event.what === "refused" ? "bad" : ""}>{event.text}</td></>)} />
    </>
  );
}

function commands(kind: string, name: string): string[] {
  switch (kind) {
    case "source":
      return [`tailrace source doctor ${name}`, `tailrace source snapshot ${name}`];
    case "sink":
      return [`tailrace sink verify ${name}`, `tailrace sink dead-letters ${name}`];
    case "pipelines":
      return ["tailrace pipeline list", "tailrace pipeline dead-letters NAME"];
    default:
      return [];
  }
}
