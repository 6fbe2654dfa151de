/** Consumer groups: members, lag over time, and moving them. */

import { useState } from "preact/hooks";
import * as api from "../api";
import { count, many } from "../format";
import { live, me } from "../live";
import { Act, Chart, Empty, FaultBox, faultOf, LongTable, State, Table, useLoaded } from "../parts/common";
import type { Fault, Moves } from "../types";
import { onlyLooks } from "../who";

const OWN = "Tailrace's own readers are not groups: views keep their positions in ticks, streams in checkpoints, sinks in their targets.";

export function Groups() {
  const [wanted, setWanted] = useState("");
  const state = live.value;
  if (!state) return <Empty>Waiting for the first figures…</Empty>;
  if (state.groups.length === 0) return <><h1>Groups</h1><Empty>No consumer group has committed an offset yet. Any Kafka client with a <code>group.id</code> makes one. {OWN}</Empty></>;
  const shown = state.groups.filter((group) => group.name.includes(wanted));
  return (
    <>
      <h1>Groups</h1>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label>Find <input type="search" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} /></label>
      </form>
      <LongTable
        name="Groups"
        columns={["group", "state", "members", "lag"]}
        numbers={new Set(["members", "lag"])}
        items={shown}
        identify={(group) => group.name}
        values={(group, column) => ({ group: group.name, state: group.state, members: group.members, lag: group.lag })[column]}
        cells={(group) => (
          <>
            <td><a href={`#/groups/${encodeURIComponent(group.name)}`}>{group.name}</a></td>
            <td><State state={group.state} /></td>
            <td class="number">{group.members}</td>
            <td class="number" data-live={`lag:${group.name}`}>{count(group.lag)}</td>
          </>
        )}
      />
    </>
  );
}

export function GroupPage({ name }: { name: string }) {
  const { value, fault } = useLoaded(() => api.group(name), [name], 2000);
  if (fault) return <FaultBox fault={fault} />;
  if (!value) return <Empty>Loading…</Empty>;
  return (
    <>
      <h1>{name} <State state={value.state} /></h1>
      <Chart series={`group:${name}`} label="lag in records" unit={count} />
      <h2>Partitions</h2>
      {value.partitions.length ? <Table rows={value.partitions} name="Partitions of the group" /> : <Empty>It has committed nothing.</Empty>}
      <h2>Members</h2>
      {value.members.length ? <Table rows={value.members} name="Members" /> : <Empty>No member is connected.</Empty>}
      <Reset name={name} members={value.members.length} />
      {value.members.length === 0 ? <Act label="Delete the group" sure={`Forget where ${name} has read to?`} work={() => api.deleteGroup(name)} told={(done) => `Group ${done.deleted} is gone.`} /> : null}
    </>
  );
}

function Reset({ name, members }: { name: string; members: number }) {
  const [kind, setKind] = useState("earliest");
  const [place, setPlace] = useState("");
  const [plan, setPlan] = useState<Moves | null>(null);
  const [fault, setFault] = useState<Fault | null>(null);
  const why = onlyLooks(me.value);
  const to = kind === "offset" || kind === "time" ? place : kind;
  const show = () => api.reset(name, to, false).then((found) => { setPlan(found); setFault(null); }, (error: unknown) => { setPlan(null); setFault(faultOf(error)); });
  return (
    <section aria-label="Move the group">
      <h2>Move the group</h2>
      {members ? <p class="note">Stop its members first: offsets of a group at work are not moved.</p> : null}
      <form class="filters" onSubmit={(event) => { event.preventDefault(); void show(); }}>
        <label>To <select value={kind} onChange={(event) => { setKind(event.currentTarget.value); setPlan(null); }}>
          <option value="earliest">the earliest record</option>
          <option value="latest">the end</option>
          <option value="offset">an offset</option>
          <option value="time">a time</option>
        </select></label>
        {kind === "offset" ? <label>Offset <input inputMode="numeric" pattern="[0-9]+" required value={place} onInput={(event) => setPlace(event.currentTarget.value)} /></label> : null}
        {kind === "time" ? <label>Time <input type="datetime-local" step="1" required value={place} onInput={(event) => setPlace(event.currentTarget.value)} /></label> : null}
        <button type="submit" class="quiet" disabled={why !== ""} title={why || undefined}>Show what would change</button>
      </form>
      {fault ? <FaultBox fault={fault} /> : null}
      {plan ? (
        <>
          <Table rows={plan.partitions} name="What would change" />
          <Act label="Move the group" sure={`Move ${plan.partitions.length} partitions of ${name}? Records are read again or passed over.`}
            work={() => api.reset(name, to, true)} told={(done) => `Moved ${many(done.partitions.length, "partition")}.`} />
        </>
      ) : null}
    </section>
  );
}
