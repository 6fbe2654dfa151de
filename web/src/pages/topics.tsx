/** Topics and their records. Record values are hostile input: always text, never markup. */

import { useState } from "preact/hooks";
import * as api from "../api";
import { bytes, clock, count, many, moment, peek, pretty, rate, setting, zone } from "../format";
import { live } from "../live";
import type { Fault, LogRecord, TopicFigures } from "../types";
import { Act, Chart, Empty, FaultBox, faultOf, LongTable, useLoaded } from "../parts/common";

export function Topics() {
  const [wanted, setWanted] = useState("");
  const [internal, setInternal] = useState(false);
  const state = live.value;
  if (!state) return <Empty>Waiting for the first figures…</Empty>;
  const shown = state.topics.filter((topic) => (internal || !topic.internal) && topic.name.includes(wanted));
  return (
    <>
      <h1>Topics</h1>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label>Find <input type="search" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} /></label>
        <label><input type="checkbox" checked={internal} onChange={(event) => setInternal(event.currentTarget.checked)} /> internal</label>
      </form>
      <Create />
      {shown.length === 0 ? <Empty>No topic{wanted ? ` with “${wanted}” in its name` : " yet: start a source, or `tailrace topic create NAME`"}.</Empty> : null}
      {shown.length ? (
        <LongTable
          name="Topics"
          columns={["topic", "records", "rate", "size", "partitions", "keeps", "groups", "lag"]}
          numbers={new Set(["partitions", "records", "size", "rate", "groups", "lag"])}
          items={shown}
          identify={(topic) => topic.name}
          values={(topic, column) => ({ topic: topic.name, partitions: topic.partitions, records: topic.kept ?? topic.records, size: topic.bytes, rate: topic.rate, keeps: keptFor(topic), groups: topic.groups, lag: topic.lag })[column]}
          cells={(topic) => (
            <>
              <td><a href={`#/topics/${encodeURIComponent(topic.name)}`}>{topic.name}</a></td>
              <td class="number">{count(topic.kept ?? topic.records)}</td>
              <td class="number" data-live={`rate:${topic.name}`}>{rate(topic.rate)}</td>
              <td class="number">{bytes(topic.bytes)}</td>
              <td class="number">{topic.partitions}</td>
              <td>{keeps(topic)}</td>
              <td class="number">{topic.groups || "–"}</td>
              <td class="number">{count(topic.lag)}</td>
            </>
          )}
        />
      ) : null}
    </>
  );
}

/** How long a topic keeps its records, in words. */
function keeps(topic: TopicFigures): string {
  if (!topic.cleanup) return "–";
  const time = setting("retention.ms", topic.retention_ms ?? "-1").replace(/ \(.*/, "");
  return topic.cleanup.split(",").map((policy) => (policy.trim() === "compact" ? "last per key" : time)).join(", ");
}

function keptFor(topic: TopicFigures): number {
  const ms = Number(topic.retention_ms ?? -1);
  return topic.cleanup?.includes("delete") && ms >= 0 ? ms : Number.MAX_SAFE_INTEGER;
}

/** A form for a topic that is not there yet. */
function Create() {
  const [name, setName] = useState("");
  const [partitions, setPartitions] = useState(1);
  return (
    <details>
      <summary>Create a topic</summary>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label>Name <input value={name} onInput={(event) => setName(event.currentTarget.value)} /></label>
        <label>Partitions <input type="number" min="1" max="1000" value={partitions} onInput={(event) => setPartitions(Number(event.currentTarget.value) || 1)} /></label>
      </form>
      <Act label="Create" work={() => api.createTopic(name.trim(), partitions)} told={(done) => `Topic ${done.created} is there.`} />
    </details>
  );
}

/** Write to a topic, change its settings, delete it; what the project keeps is refused by the server. */
function Operate({ name }: { name: string }) {
  const [key, setKey] = useState("");
  const [value, setValue] = useState("");
  const [what, setWhat] = useState("retention.ms");
  const [to, setTo] = useState("");
  return (
    <details>
      <summary>Write a record, change a setting, delete</summary>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label>Key <input value={key} onInput={(event) => setKey(event.currentTarget.value)} /></label>
        <label>Value <textarea rows={2} value={value} onInput={(event) => setValue(event.currentTarget.value)} /></label>
      </form>
      <Act label="Write" work={() => api.writeRecord(name, key || null, value)} told={(done) => `Written at ${done.partition}:${done.offset}.`} />
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label>Setting <input value={what} onInput={(event) => setWhat(event.currentTarget.value)} /></label>
        <label>Value <input placeholder="empty: the default" value={to} onInput={(event) => setTo(event.currentTarget.value)} /></label>
      </form>
      <Act label="Change" work={() => api.alterTopic(name, { [what.trim()]: to.trim() || null })} told={() => `${what.trim()} is ${to.trim() || "the default"}.`} />
      <Act label="Delete the topic" sure={`Delete ${name} with all its records?`} work={() => api.deleteTopic(name)} told={(done) => `Topic ${done.deleted} is gone.`} />
    </details>
  );
}

export function TopicPage({ name }: { name: string }) {
  const { value: about, fault } = useLoaded(() => api.topic(name), [name], 5000);
  if (fault) return <FaultBox fault={fault} />;
  return (
    <>
      <h1>{name}</h1>
      <Chart series={`topic:${name}`} label="records a second" unit={count} />
      {about ? (
        <details>
          <summary>{many(about.partitions.length, "partition")}, {many(Object.keys(about.config).length, "setting")}{about.changed?.length ? `, ${about.changed.length} changed` : ""}</summary>
          <div class="scroll">
            <table aria-label="Partitions">
              <thead><tr><th scope="col" class="number">partition</th><th scope="col" class="number">first offset</th><th scope="col" class="number">end offset</th><th scope="col" class="number">size</th></tr></thead>
              <tbody>
                {about.partitions.map((part) => (
                  <tr key={part.partition}><td class="number">{part.partition}</td><td class="number">{part.first}</td><td class="number">{part.end}</td><td class="number">{bytes(part.bytes)}</td></tr>
                ))}
              </tbody>
            </table>
          </div>
          <dl class="settings">{Object.entries(about.config).map(([key, value]) => (<div key={key} class={about.changed?.includes(key) ? "changed" : ""}><dt>{key}</dt><dd>{setting(key, value)}{about.changed?.includes(key) ? <em> not the default</em> : null}</dd></div>))}</dl>
          <p class="note">Markers at the end of transactions take an offset each, too: offsets of records may skip some.</p>
        </details>
      ) : null}
      <Operate name={name} />
      <Records name={name} />
    </>
  );
}

const NOTHING = { partition: "", key: "", value: "", header: "", where: "" };

/** Records of a topic, filtered, page by page; from the end they are live until one asks for more. */
function Records({ name }: { name: string }) {
  const [chosen, setChosen] = useState("latest");
  const [time, setTime] = useState("");
  const [offset, setOffset] = useState("");
  const [written, setWritten] = useState(NOTHING);
  const [filter, setFilter] = useState(NOTHING);
  const [more, setMore] = useState<api.RecordPage[]>([]);
  const [fault, setFault] = useState<Fault | null>(null);
  const [busy, setBusy] = useState(false);
  const from = chosen === "time" ? String(new Date(time).getTime() || 0) : chosen === "offset" ? `offset:${offset.trim() || "0"}` : chosen;
  const asked = { from, ...filter };
  const filtered = Object.values(filter).some(Boolean);
  const live = from === "latest" && !more.length && !filtered;
  const { value: first, fault: firstFault } = useLoaded(() => api.latest(name, asked), [name, from, filter, more.length > 0], live ? 2000 : 0);
  const pages = more.length ? more : first ? [first] : [];
  const last = pages.at(-1);
  const records = pages.flatMap((page) => page.records);
  const again = (set: () => void) => { setMore([]); setFault(null); set(); };
  const write = (what: keyof typeof NOTHING) => (event: { currentTarget: { value: string } }) => setWritten({ ...written, [what]: event.currentTarget.value });
  const goOn = () => {
    if (!last?.next) return;
    setBusy(true);
    api.latest(name, asked, last.next).then(
      (page) => { setMore([...pages, page]); setFault(null); },
      (error: unknown) => setFault(faultOf(error)),
    ).finally(() => setBusy(false));
  };
  return (
    <>
      <form class="filters" aria-label="Records" onSubmit={(event) => { event.preventDefault(); again(() => setFilter(written)); }}>
        <label>Records from <select value={chosen} onChange={(event) => again(() => setChosen(event.currentTarget.value))}>
          <option value="latest">the end</option>
          <option value="earliest">the start</option>
          <option value="-5m">5 minutes ago</option>
          <option value="-1h">1 hour ago</option>
          <option value="time">a time</option>
          <option value="offset">an offset</option>
        </select></label>
        {chosen === "time" ? <label>Time <input type="datetime-local" step="1" value={time} onInput={(event) => again(() => setTime(event.currentTarget.value))} /></label> : null}
        {chosen === "offset" ? <label>Offset <input type="number" min="0" value={offset} onInput={(event) => again(() => setOffset(event.currentTarget.value))} /></label> : null}
        <label>Partition <input type="number" min="0" value={written.partition} onInput={write("partition")} /></label>
        <label>Key has <input type="search" value={written.key} onInput={write("key")} /></label>
        <label>Value has <input type="search" value={written.value} onInput={write("value")} /></label>
        <label>Header <input type="search" placeholder="NAME or NAME=text" value={written.header} onInput={write("header")} /></label>
        <label>Where <input type="search" placeholder="status = 'open' AND amount > 5" value={written.where} onInput={write("where")} /></label>
        <button type="submit">Search</button>
        {filtered ? <button type="button" class="quiet" onClick={() => again(() => { setWritten(NOTHING); setFilter(NOTHING); })}>Clear</button> : null}
      </form>
      {firstFault ? <FaultBox fault={firstFault} /> : null}
      {last && !firstFault ? (
        <p class="note" aria-live="polite">
          {many(records.length, "record")}{filtered ? ` of ${count(pages.reduce((sum, page) => sum + page.scanned, 0))} searched` : ""}{live ? ", live" : ""}
        </p>
      ) : null}
      {last && records.length === 0 && !last.next ? <Empty>{filtered ? "No record matches." : "No records here yet."}</Empty> : null}
      <ol class="records">
        {records.map((record) => (
          <li key={`${record.partition}-${record.offset}`}>
            <details>
              <summary>
                <code>{record.partition}:{record.offset}</code> <time>{clock(record.timestamp)}</time>{" "}
                <Peek record={record} />
              </summary>
              <p class="note">key <code>{record.key ?? "NULL"}</code>, written {moment(record.timestamp)} ({zone()})</p>
              <pre>{pretty(record.value)}</pre>
              {Object.keys(record.headers).length ? (
                <table class="headers" aria-label="Headers">
                  <thead><tr><th scope="col">header</th><th scope="col">value</th></tr></thead>
                  <tbody>{Object.entries(record.headers).map(([header, value]) => <tr key={header}><td>{header}</td><td><code>{value ?? "NULL"}</code></td></tr>)}</tbody>
                </table>
              ) : null}
            </details>
          </li>
        ))}
      </ol>
      {fault ? <FaultBox fault={fault} /> : null}
      {last?.next ? <button type="button" disabled={busy} onClick={goOn}>{busy ? "Searching…" : records.length ? "More" : "Search on"}</button> : null}
    </>
  );
}

/** One line of a record: its key, and what a change did to which row. */
function Peek({ record }: { record: LogRecord }) {
  const { op, text } = peek(record.value);
  return <>{op ? <span class={`op op-${op}`}>{op}</span> : null} <b>{record.key ?? "NULL"}</b> <span class="peek">{text}</span></>;
}
