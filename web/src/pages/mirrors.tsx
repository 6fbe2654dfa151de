/** Mirrors: how far each is, what stopped, leaving a site and coming back. */

import { useState } from "preact/hooks";
import * as api from "../api";
import { age, count, many } from "../format";
import { live, me } from "../live";
import { Act, Chart, Empty, FaultBox, faultOf, LongTable, State, Table, useLoaded } from "../parts/common";
import type { Fault, FailOver, MirrorAbout } from "../types";
import { onlyLooks } from "../who";

const EVERY = 3000;
const process = (name: string) => live.value?.parts.find((part) => part.kind === "mirror" && part.name === name);

export function Mirrors() {
  const { value, fault } = useLoaded(api.mirrors, [], EVERY);
  if (fault) return <FaultBox fault={fault} />;
  if (!value) return <Empty>Loading…</Empty>;
  if (value.mirrors.length === 0) return <><h1>Mirrors</h1><Empty>No mirror is declared. Add one to <code>tailrace.toml</code>: <code>[mirrors.NAME]</code> with <code>from</code>, <code>to</code> and <code>topics</code>.</Empty></>;
  return (
    <>
      <h1>Mirrors</h1>
      <LongTable
        name="Mirrors"
        columns={["mirror", "state", "from", "to", "behind", "age", "records", "conflicts"]}
        numbers={new Set(["behind", "age", "records", "conflicts"])}
        items={value.mirrors}
        identify={(mirror) => mirror.name}
        values={(mirror, column) => ({ mirror: mirror.name, state: mirror.state, from: mirror.from, to: mirror.to, behind: mirror.lag_records, age: mirror.lag_ms, records: mirror.records, conflicts: mirror.conflicts })[column]}
        cells={(mirror) => (
          <>
            <td><a href={`#/mirrors/${encodeURIComponent(mirror.name)}`}>{mirror.name}</a></td>
            <td><State state={stateOf(mirror)} /></td>
            <td>{mirror.from}</td>
            <td>{mirror.to}</td>
            <td class="number" data-live={`behind:${mirror.name}`}>{count(mirror.lag_records)}</td>
            <td class="number">{age(mirror.lag_ms)}</td>
            <td class="number">{count(mirror.records)}</td>
            <td class="number">{count(mirror.conflicts)}</td>
          </>
        )}
      />
    </>
  );
}

/** What the rows at the target say; whether it runs, its process says. */
function stateOf(mirror: MirrorAbout): string {
  if (mirror.state === null) return "target does not answer";
  return mirror.state === "running" ? (process(mirror.name)?.state ?? "not started") : mirror.state;
}

export function MirrorPage({ name }: { name: string }) {
  const { value, fault } = useLoaded(() => api.mirror(name), [name], EVERY);
  if (fault) return <FaultBox fault={fault} />;
  if (!value) return <Empty>Loading…</Empty>;
  const stops = value.topics.flatMap((place) => (place.stopped ? [place.stopped] : []));
  return (
    <>
      <h1>{name} <State state={stateOf(value)} /></h1>
      <p>Keeps <code>{value.patterns.join(", ")}</code> of {value.from} in {value.to}: {many(value.records, "record")}{value.lag_records === null ? "; the source does not answer" : `, ${many(value.lag_records, "offset")} behind`}{value.lag_ms ? ` (${age(value.lag_ms)})` : ""}.</p>
      {value.rule ? <p class="note">Where both sites write a key: {value.rule}. {many(value.conflicts, "record")} lost and are kept in <code>&lt;topic&gt;.conflicts</code>.</p> : null}
      {stops.map((stop) => <FaultBox key={stop.message} fault={{ error: stop.message, detail: stop.detail, code: stop.code }} />)}
      <Chart series={`part:mirror-${name}`} label="offsets behind" unit={count} />
      <h2>Partitions</h2>
      {value.topics.length ? <Table name="Partitions of the mirror" rows={value.topics.map(({ stopped, ...place }) => ({ ...place, stopped: stopped?.code ?? "" }))} /> : <Empty>Nothing was mirrored yet.</Empty>}
      {value.state === "failed-over" ? <FailBackForm name={name} /> : <FailOverForm mirror={value} />}
    </>
  );
}

function FailOverForm({ mirror }: { mirror: MirrorAbout }) {
  const [start, setStart] = useState("translated");
  const [plan, setPlan] = useState<FailOver | null>(null);
  const [fault, setFault] = useState<Fault | null>(null);
  const why = onlyLooks(me.value);
  const show = () => api.failOver(mirror.name, start, false).then((found) => { setPlan(found); setFault(null); }, (error: unknown) => { setPlan(null); setFault(faultOf(error)); });
  return (
    <section aria-label="Fail over">
      <h2>Fail over to {mirror.to}</h2>
      <form class="filters" onSubmit={(event) => { event.preventDefault(); void show(); }}>
        <label>Groups start at <select value={start} onChange={(event) => { setStart(event.currentTarget.value); setPlan(null); }}>
          <option value="translated">their translated offset</option>
          <option value="time">the time they had read to</option>
          <option value="earliest">the earliest record</option>
          <option value="latest">the end</option>
        </select></label>
        <button type="submit" class="quiet" disabled={why !== ""} title={why || undefined}>Show what would be missing</button>
      </form>
      {fault ? <FaultBox fault={fault} /> : null}
      {plan ? (
        <>
          <p>{plan.not_mirrored === null ? `${mirror.from} does not answer: how much has not arrived is not known.` : `${many(plan.not_mirrored, "offset")} of ${mirror.from} have not arrived.`}</p>
          {plan.living.length ? <p class="note">Left alone, because they have members there: {plan.living.join(", ")}.</p> : null}
          {Object.keys(plan.groups).length ? <Table name="Groups" rows={Object.entries(plan.groups).flatMap(([group, places]) => Object.entries(places).map(([place, offset]) => ({ group, place, offset })))} /> : null}
          <Act label="Fail over" sure={`Fence the mirror ${mirror.name}? ${mirror.to} stands alone from then on.`} work={() => api.failOver(mirror.name, start, true)} told={() => `${mirror.to} stands alone now.`} />
        </>
      ) : null}
    </section>
  );
}

function FailBackForm({ name }: { name: string }) {
  return (
    <section aria-label="Fail back">
      <h2>Fail back</h2>
      <p class="note">Stop the writers of the target first. What only the source has is kept in <code>&lt;topic&gt;.unmirrored</code> there.</p>
      <Act label="Show what would be copied" work={() => api.failBack(name, false)} told={(found) => `${many(found.only_at_source, "record")} only at the source, ${many(found.to_copy, "offset")} to be copied.`} />
      <Act label="Fail back" sure={`Copy to the source what the target was given, and let ${name} run again?`} work={() => api.failBack(name, true)} told={(found) => `${many(found.to_copy, "offset")} copied; the mirror runs again.`} />
    </section>
  );
}
