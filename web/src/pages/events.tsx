/** Event topics: who owns them, and a stream through time. States and events are hostile input:
 * always text, never markup. */

import { useEffect, useState } from "preact/hooks";
import * as api from "../api";
import { bytes, cell, count, rate } from "../format";
import { live } from "../live";
import type { EventTopic, Fault, StateAt, StreamEvent } from "../types";
import { Chart, Empty, FaultBox, faultOf, LongTable, useLoaded } from "../parts/common";

const EACH = 200; // events of a stream shown at once

const rateOf = (topic: string) => live.value?.topics.find((each) => each.name === topic)?.rate;

export function Events() {
  const { value, fault } = useLoaded(api.eventTopics, [], 2000);
  if (fault) return <FaultBox fault={fault} />;
  if (!value) return <Empty>Loading…</Empty>;
  if (value.topics.length === 0) return <><h1>Events</h1><Empty>The project declares no event topic. Declare one: <code>tr.events("accounts", …)</code>.</Empty><Erasures /></>;
  return (
    <>
      <h1>Events</h1>
      <LongTable
        name="Event topics"
        columns={["topic", "partitions", "events", "streams", "size", "rate", "foreign", "rebuild"]}
        numbers={new Set(["partitions", "events", "streams", "size", "rate", "foreign", "rebuild"])}
        items={value.topics}
        identify={(topic) => topic.topic}
        cells={(topic) => (
          <>
            <td><a href={`#/events/${encodeURIComponent(topic.topic)}`}>{topic.topic}</a></td>
            <td class="number">{topic.partitions}</td>
            <td class="number">{count(topic.events)}</td>
            <td class="number">{count(topic.streams)}</td>
            <td class="number">{bytes(topic.bytes)}</td>
            <td class="number" data-live={`rate:${topic.topic}`}>{rate(rateOf(topic.topic) ?? topic.rate)}</td>
            <td class="number">{count(topic.foreign)}</td>
            <td class="number">{topic.rebuilt_seconds ? `${topic.rebuilt_seconds} s` : "–"}</td>
          </>
        )}
      />
      <Reactions />
      <Erasures />
    </>
  );
}

/** What reactions have open: commands that are tried again, timers, and what is stuck. */
function Reactions() {
  const { value, fault } = useLoaded(api.reactions, [], 5000);
  if (fault) return <><h2>Reactions</h2><FaultBox fault={fault} /></>;
  if (!value || value.reactions.length === 0) return null;
  const items = value.reactions.flatMap((each) => each.processes.map((process) => ({ reaction: each.reaction, ...process })));
  return (
    <>
      <h2>Reactions</h2>
      {value.reactions.map((each) => (
        <p class="note" key={each.reaction}>
          {each.reaction}, of {each.sources.join(", ")}: {each.error ? <span class="bad">{each.error}</span> : `${each.more ? "more than " : ""}${count(each.processes.length)} open`}
        </p>
      ))}
      {items.length === 0 ? <Empty>No process has anything open.</Empty> : (
        <LongTable
          name="Open processes"
          columns={["reaction", "process", "command", "attempts", "timers due", "trouble"]}
          numbers={new Set(["attempts"])}
          items={items}
          identify={(item) => `${item.reaction}/${item.process}`}
          values={(item, column) => (column === "timers due" ? item.timers[0]?.due ?? "" : column === "trouble" ? item.error : item[column as "reaction" | "process" | "command" | "attempts"])}
          cells={(item) => (
            <>
              <td>{item.reaction}</td>
              <td>{item.process}</td>
              <td>{item.command || "–"}</td>
              <td class="number">{count(item.attempts)}</td>
              <td>{item.timers.map((timer) => <div key={timer.name}>{timer.name} <time dateTime={timer.due}>{new Date(timer.due).toLocaleString()}</time></div>)}</td>
              <td>{item.stuck ? <span class="bad">stuck</span> : null} {item.error}</td>
            </>
          )}
        />
      )}
    </>
  );
}

/** What was erased, when and why; nobody is named in it. */
function Erasures() {
  const { value, fault } = useLoaded(api.erasures, [], 10000);
  if (fault) return <><h2>Erasures</h2><FaultBox fault={fault} /></>;
  if (!value || value.erasures.length === 0) return null;
  return (
    <>
      <h2>Erasures</h2>
      <LongTable
        name="Erasures"
        columns={["erased at", "kind", "state", "counts", "reason", "id"]}
        items={value.erasures}
        identify={(erasure) => erasure.id}
        cells={(erasure) => (
          <>
            <td><time dateTime={erasure.at}>{new Date(erasure.at).toLocaleString()}</time></td>
            <td>{erasure.kind}</td>
            <td>{erasure.state === "done" ? erasure.state : <span class="bad">{erasure.state}</span>}</td>
            <td>{Object.entries(erasure.counts).map(([topic, number]) => <div key={topic}>{topic}: {count(number)}</div>)}</td>
            <td>{erasure.reason}</td>
            <td><code>{erasure.id}</code></td>
          </>
        )}
      />
    </>
  );
}

export function EventPage({ name }: { name: string }) {
  const [topic = "", ...rest] = name.split("/");
  const stream = rest.join("/");
  return stream ? <StreamPage topic={topic} stream={stream} key={name} /> : <TopicOfEvents name={topic} />;
}

function TopicOfEvents({ name }: { name: string }) {
  const [wanted, setWanted] = useState("");
  const { value, fault } = useLoaded(() => api.eventTopic(name), [name], 3000);
  const find = (event: SubmitEvent) => {
    event.preventDefault();
    if (wanted.trim()) location.hash = `/events/${encodeURIComponent(name)}/${encodeURIComponent(wanted.trim())}`;
  };
  return (
    <>
      <h1>{name}</h1>
      <Chart series={`topic:${name}`} label="events a second" unit={count} />
      <form class="filters" onSubmit={find}>
        <label>Stream <input type="search" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} /></label>
        <button type="submit">Show its history</button>
      </form>
      {fault ? <FaultBox fault={fault} /> : null}
      {value ? <About topic={value} /> : fault ? null : <Empty>Asking the owners…</Empty>}
    </>
  );
}

function About({ topic }: { topic: EventTopic }) {
  return (
    <>
      <h2>Owners and fences</h2>
      <LongTable
        name="Owners"
        columns={["partition", "owner", "producer", "epoch", "events", "waiting"]}
        numbers={new Set(["partition", "producer", "epoch", "events", "waiting"])}
        items={topic.owners ?? []}
        identify={(owner) => String(owner.partition)}
        cells={(owner) => (
          <>
            <td class="number">{owner.partition}</td>
            <td>{owner.owner ?? <span class="bad">nobody</span>}</td>
            <td class="number">{owner.producer_id ?? "–"}</td>
            <td class="number">{owner.epoch ?? "–"}</td>
            <td class="number">{count(owner.events)}</td>
            <td class="number">{count(owner.waiting)}</td>
          </>
        )}
      />
      <h2>Types and commands</h2>
      <dl class="settings">
        <div><dt>types</dt><dd>{topic.types.join(", ")}</dd></div>
        {Object.entries(topic.commands).map(([command, parameters]) => (
          <div key={command}><dt>{command}</dt><dd>{parameters.join(", ") || "no arguments"}</dd></div>
        ))}
      </dl>
    </>
  );
}

function StreamPage({ topic, stream }: { topic: string; stream: string }) {
  const { value: newest, fault } = useLoaded(() => api.stateOf(topic, stream), [topic, stream], 2000);
  const [chosen, setChosen] = useState<number | null>(null);
  const last = newest?.version ?? 0;
  const version = Math.min(chosen ?? last, last);
  const first = Math.max(1, version - EACH / 2);
  const { value: page } = useLoaded(() => api.historyOf(topic, stream, first, EACH), [topic, stream, Math.floor(first / 50), last]);
  return (
    <>
      <h1><a href={`#/events/${encodeURIComponent(topic)}`}>{topic}</a> / {stream}</h1>
      {fault ? <FaultBox fault={fault} /> : null}
      {newest && last === 0 ? <Empty>This stream has no events.</Empty> : null}
      {last > 0 ? (
        <>
          <p class="filters">
            <label>Version <input type="range" aria-label="Version" min={0} max={last} value={version} onInput={(event) => setChosen(Number(event.currentTarget.value))} /></label>
            <label>of {count(last)}: <input type="number" aria-label="Version number" min={0} max={last} value={version} onInput={(event) => setChosen(Number(event.currentTarget.value))} /></label>
            {version < last ? <button type="button" class="quiet" onClick={() => setChosen(null)}>Now</button> : null}
          </p>
          <AtVersion topic={topic} stream={stream} version={version} />
          <h2>History</h2>
          <TimeLine events={page?.events ?? []} version={version} choose={setChosen} />
        </>
      ) : null}
    </>
  );
}

/** The state at a version, and what its last event changed. */
function AtVersion({ topic, stream, version }: { topic: string; stream: string; version: number }) {
  const [found, setFound] = useState<[StateAt, StateAt] | null>(null);
  const [fault, setFault] = useState<Fault | null>(null);
  useEffect(() => {
    let gone = false;
    // Wait until the slider rests: every place on it is a question.
    const timer = setTimeout(() => {
      Promise.all([api.stateOf(topic, stream, version), api.stateOf(topic, stream, Math.max(0, version - 1))]).then(
        (pair) => {
          if (gone) return;
          setFound(pair);
          setFault(null);
        },
        (error: unknown) => { if (!gone) setFault(faultOf(error)); },
      );
    }, found ? 120 : 0);
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [topic, stream, version]);
  if (fault) return <FaultBox fault={fault} />;
  if (!found) return <Empty>Folding…</Empty>;
  const [now, before] = found.map((each) => fieldsOf(each.state)) as [Record<string, unknown>, Record<string, unknown>];
  const names = [...new Set([...Object.keys(before), ...Object.keys(now)])];
  return (
    <div class="panel">
      <h2>State at version <span data-live="version">{found[0].version}</span></h2>
      {names.length === 0 ? <p class="note">There is none.</p> : (
        <table aria-label="State">
          <thead><tr><th scope="col">field</th><th scope="col">value</th><th scope="col">before</th></tr></thead>
          <tbody>
            {names.map((name) => {
              const [value, old] = [cell(now[name]), cell(before[name])];
              return <tr key={name}><td>{name}</td><td class={value === old ? "" : "added"}><code>{value}</code></td><td class="note">{value === old ? "" : <code>{old}</code>}</td></tr>;
            })}
          </tbody>
        </table>
      )}
    </div>
  );
}

function fieldsOf(state: unknown): Record<string, unknown> {
  if (state === null || state === undefined) return {};
  return typeof state === "object" && !Array.isArray(state) ? (state as Record<string, unknown>) : { state };
}

function TimeLine({ events, version, choose }: { events: StreamEvent[]; version: number; choose: (version: number) => void }) {
  return (
    <ol class="timeline" aria-label="Time line">
      {[...events].reverse().map((event) => (
        <li key={event.version} class={event.version === version ? "chosen" : event.version > version ? "later" : ""} aria-current={event.version === version ? "step" : undefined}>
          <button type="button" class="quiet" onClick={() => choose(event.version)}>{event.version}</button>
          <details>
            <summary><time dateTime={event.at}>{new Date(event.at).toLocaleString()}</time> <b>{event.type}</b> <span class="peek">{JSON.stringify(event.event)}</span></summary>
            <dl class="settings">
              {(["name", "actor", "cause", "correlation", "command", "position"] as const).map((name) => (event[name] ? <div key={name}><dt>{name === "name" ? "command" : name === "command" ? "command id" : name}</dt><dd>{event[name]}</dd></div> : null))}
            </dl>
          </details>
        </li>
      ))}
    </ol>
  );
}
