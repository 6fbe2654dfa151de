/** Consumer groups: members, lag, and lag over time. */

import * as api from "../api";
import { count } from "../format";
import { live } from "../live";
import { Chart, Empty, FaultBox, State, Table, useLoaded } from "../parts/common";

export function Groups() {
  const state = live.value;
  if (!state) return <Empty>Waiting for the first figures…</Empty>;
  if (state.groups.length === 0) return <Empty>No consumer group has committed an offset yet.</Empty>;
  return (
    <div class="scroll">
      <table aria-label="Groups">
        <thead><tr><th scope="col">group</th><th scope="col">state</th><th scope="col">members</th><th scope="col">lag</th></tr></thead>
        <tbody>
          {state.groups.map((group) => (
            <tr key={group.name}>
              <td><a href={`#/groups/${encodeURIComponent(group.name)}`}>{group.name}</a></td>
              <td><State state={group.state} /></td>
              <td class="number">{group.members}</td>
              <td class="number" data-live={`lag:${group.name}`}>{count(group.lag)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function GroupPage({ name }: { name: string }) {
  const { value, fault } = useLoaded(() => api.group(name), [name], 2000);
  if (fault) return <FaultBox fault={fault} />;
  if (!value) return <Empty>Loading…</Empty>;
  return (
    <>
      <h1>{name} <State state={value.state} /></h1>
      <Chart series={`group:${name}`} label="lag in records" />
      <h2>Partitions</h2>
      <Table rows={value.partitions} name="Partitions of the group" />
      <h2>Members</h2>
      {value.members.length ? <Table rows={value.members} name="Members" /> : <Empty>No member is connected.</Empty>}
      <p class="note">To move the group: <code>tailrace group reset {name} --to earliest --execute</code> while it has no members.</p>
    </>
  );
}
