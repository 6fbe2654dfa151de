/** Pipelines: batch times, rows, watermarks, late and dead records. */

import * as api from "../api";
import { age, cell, count, moment, rate } from "../format";
import { live, viewFault } from "../live";
import { Chart, Empty, FaultBox, LongTable, State, useLoaded } from "../parts/common";
import { DeadLetters } from "../parts/letters";
import type { Fault } from "../types";

const time = (ms: number) => moment(ms);
const milliseconds = (value: number) => age(value);
const SHOWN = new Set(["state", "error"]);
const NAMES: Record<string, string> = { milliseconds: "batch time", watermark_ms: "watermark", rows_per_second: "rows a second", rows_total: "rows so far" };

/** A fact of a stream as people read it. */
function shown(fact: string, found: unknown): string {
  if (typeof found !== "number") return cell(found);
  if (fact === "milliseconds") return age(found);
  return fact === "watermark_ms" ? time(found) : count(found);
}

export function Pipelines() {
  const { value, fault } = useLoaded(api.pipelines, [], 2000);
  if (fault) return <FaultBox fault={fault} />;
  if (!value) return <Empty>Loading…</Empty>;
  const part = `part:pipelines-${live.value?.project ?? ""}`;
  const late = Object.entries(value.late);
  const watermarks = Object.entries(value.watermarks);
  return (
    <>
      <h1>Pipelines <State state={value.state} /></h1>
      {value.error ? <FaultBox fault={value.error} /> : null}
      {value.views.length + value.streams.length === 0 ? <Empty>No view or stream is declared. Add one with <code>tr.view(…)</code> or <code>@tr.stream(…)</code>.</Empty> : null}
      {value.views.length ? (
        <>
          <h2>Views</h2>
          <dl class="facts">
            <div><dt>tick</dt><dd data-live="tick">{count(value.tick.number)}</dd></div>
            <div><dt>tick time</dt><dd>{age(value.tick.milliseconds)}</dd></div>
            {value.tick.rows !== null ? <div><dt>changes</dt><dd>{count(value.tick.rows)}</dd></div> : null}
            <div><dt>lag in records</dt><dd>{count(value.tick.lag)}</dd></div>
            <div><dt>latency</dt><dd>{age(value.tick.freshness_ms)}</dd></div>
            <div><dt>dead letters</dt><dd>{count(value.dead)}</dd></div>
          </dl>
          <Chart series={`${part}:tick`} label="time a tick takes" unit={milliseconds} />
          <LongTable
            name="Views"
            columns={["view", "changes so far", "state", "declared"]}
            numbers={new Set(["changes so far"])}
            items={value.views}
            identify={(view) => view.name}
            cells={(view) => (
              <>
                <td><a href={`#/views/${encodeURIComponent(view.name)}`}>{view.name}</a></td>
                <td class="number">{count(view.records)}</td>
                <td class={viewFault(live.value, view.name) ? "bad" : ""}>{viewFault(live.value, view.name)?.error ?? (view.filling ? "being filled" : "")}</td>
                <td class="note">{view.declared}</td>
              </>
            )}
          />
        </>
      ) : null}
      {value.streams.length ? (
        <>
          <h2>Streams</h2>
          <LongTable
            name="Streams"
            columns={["stream", "batch", "rows", "rate", "batch time", "late", "dead letters"]}
            numbers={new Set(["batch", "rows", "rate", "batch time", "late", "dead letters"])}
            items={value.streams}
            identify={(stream) => stream.name}
            cells={(stream) => (
              <>
                <td><a href={`#/pipelines/${encodeURIComponent(stream.name)}`}>{stream.name}</a></td>
                <td class="number">{count(stream.progress?.batch)}</td>
                <td class="number">{count(stream.progress?.rows)}</td>
                <td class="number">{rate(stream.progress?.rows_per_second)}</td>
                <td class="number">{age(stream.progress?.milliseconds)}</td>
                <td class="number">{count(stream.late)}</td>
                <td class="number">{count(stream.dead)}</td>
              </>
            )}
          />
        </>
      ) : null}
      {watermarks.length || late.length ? <h2>Time</h2> : null}
      {watermarks.length ? (
        <LongTable name="Watermarks" columns={["topic", "watermark"]} items={watermarks} identify={([topic]) => topic}
          cells={([topic, at]) => (<><td>{topic}</td><td>{time(at)}</td></>)} />
      ) : null}
      {late.length ? (
        <LongTable name="Late rows" columns={["topic", "late rows"]} items={late} identify={([topic]) => topic}
          cells={([topic, rows]) => (<><td>{topic}</td><td class="number">{count(rows)}</td></>)} />
      ) : null}
      {value.views[0] ? <DeadLetters name={value.views[0].name} retriable={false} why="Correct the cause, then `tailrace pipeline reset NAME` reads everything again: a table's old record must not be written behind newer ones." /> : null}
    </>
  );
}

export function PipelinePage({ name }: { name: string }) {
  const { value, fault } = useLoaded(api.pipelines, [name], 2000);
  if (fault) return <FaultBox fault={fault} />;
  if (!value) return <Empty>Loading…</Empty>;
  const stream = value.streams.find((candidate) => candidate.name === name);
  if (!stream) return <Empty>No stream of that name is declared.</Empty>;
  const failed = stream.progress?.["error"] as Fault | null | undefined;
  return (
    <>
      <h1>{name} <State state={stream.progress ? String(stream.progress["state"] ?? value.state) : "starting"} /></h1>
      <p class="note">{stream.declared}</p>
      {failed ? <FaultBox fault={failed} /> : null}
      <Chart series={`stream:${name}`} label="time a batch takes" unit={milliseconds} />
      <dl class="facts">
        {Object.entries(stream.progress ?? {}).filter(([fact, found]) => found !== null && found !== undefined && !SHOWN.has(fact)).map(([fact, found]) => (
          <div key={fact}><dt>{NAMES[fact] ?? fact.replaceAll("_", " ")}</dt><dd>{shown(fact, found)}</dd></div>
        ))}
        <div><dt>records written</dt><dd>{count(stream.records)}</dd></div>
        <div><dt>late records kept</dt><dd>{count(stream.late)}</dd></div>
      </dl>
      <p><a href={`#/topics/${encodeURIComponent(name)}`}>Its records</a>{stream.late ? <> · <a href={`#/topics/${encodeURIComponent(`${name}.late`)}`}>late ones</a></> : null}</p>
      <DeadLetters name={name} retriable />
    </>
  );
}
