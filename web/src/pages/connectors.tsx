/** Connectors of the project's worker: states, tasks, offsets, errors; pause, resume, stop, restart. */

import * as api from "../api";
import { many } from "../format";
import { Act, Empty, LongTable, FaultBox, State, useLoaded } from "../parts/common";
import type { ConnectorAbout } from "../types";

const EVERY = 3000;
const shown = (state: string) => <State state={state.toLowerCase()} />;

export function Connectors() {
  const { value, fault } = useLoaded(api.connectors, [], EVERY);
  if (fault) return <><h1>Connectors</h1><FaultBox fault={fault} /></>;
  if (!value) return <Empty>Loading…</Empty>;
  if (value.worker === null) return <><h1>Connectors</h1><Empty>The project has no worker for connectors. Add <code>listen</code> under <code>[connect]</code> to <code>tailrace.toml</code>.</Empty></>;
  return (
    <>
      <h1>Connectors</h1>
      <p class="note">Of the worker at <code>{value.worker}</code>.</p>
      {value.connectors.length ? (
        <LongTable
          name="Connectors"
          columns={["connector", "state", "type", "class", "tasks running", "failed"]}
          numbers={new Set(["failed"])}
          items={value.connectors}
          identify={(one) => one.name}
          values={(one, column) => ({ connector: one.name, state: one.state, type: one.type, class: one.class, "tasks running": one.running, failed: one.failed })[column]}
          cells={(one) => (
            <>
              <td><a href={`#/connectors/${encodeURIComponent(one.name)}`}>{one.name}</a></td>
              <td>{shown(one.failed ? "FAILED" : one.state)}</td>
              <td>{one.type}</td>
              <td>{one.class}</td>
              <td>{one.running} of {one.count}</td>
              <td class="number">{one.failed}</td>
            </>
          )}
        />
      ) : <Empty>No connector was made yet.</Empty>}
    </>
  );
}

export function ConnectorPage({ name }: { name: string }) {
  const { value, fault } = useLoaded(() => api.connector(name), [name], EVERY);
  if (fault) return <><h1>{name}</h1><FaultBox fault={fault} /></>;
  if (!value) return <Empty>Loading…</Empty>;
  return (
    <>
      <h1>{name} {shown(value.state)}</h1>
      <p>A {value.type} of class <code>{value.class}</code> at {value.worker}, {many(value.count, "task")}{value.topics.length ? <>; topics {value.topics.map((topic, at) => <>{at ? ", " : ""}<a href={`#/topics/${encodeURIComponent(topic)}`}>{topic}</a></>)}</> : null}.</p>
      <Operations connector={value} />
      {value.trace ? <div class="fault" role="alert"><pre>{value.trace}</pre></div> : null}
      <h2>Tasks</h2>
      {value.tasks.length ? (
        <LongTable
          name="Tasks"
          columns={["task", "state", "worker", "restart"]}
          items={value.tasks}
          identify={(task) => String(task.id)}
          cells={(task) => (
            <>
              <td>{task.id}</td>
              <td>{shown(task.state)}</td>
              <td>{task.worker_id}</td>
              <td><Act label={`Restart task ${task.id}`} work={() => api.restartTask(name, task.id)} told={() => "Asked."} /></td>
            </>
          )}
        />
      ) : <Empty>It has no tasks now.</Empty>}
      <h2>Offsets</h2>
      {value.offsets.length ? (
        <LongTable
          name="Offsets"
          columns={["partition", "offset"]}
          items={value.offsets}
          identify={(one) => JSON.stringify(one.partition)}
          cells={(one) => (
            <>
              <td><code>{JSON.stringify(one.partition)}</code></td>
              <td><code>{JSON.stringify(one.offset)}</code></td>
            </>
          )}
        />
      ) : <Empty>None was committed yet.</Empty>}
      <h2>Settings</h2>
      <LongTable
        name="Settings"
        columns={["setting", "value"]}
        items={Object.entries(value.config)}
        identify={([setting]) => setting}
        cells={([setting, text]) => <><td><code>{setting}</code></td><td><code>{text}</code></td></>}
      />
    </>
  );
}

function Operations({ connector }: { connector: ConnectorAbout }) {
  const act = (label: string, what: string, told: string, sure?: string) => (
    <Act key={what} label={label} sure={sure} work={() => api.operateConnector(connector.name, what)} told={() => told} />
  );
  const halted = connector.state === "PAUSED" || connector.state === "STOPPED";
  return (
    <section aria-label="Operations" class="filters">
      {halted ? act("Resume", "resume", "It goes on.") : act("Pause", "pause", "It pauses.")}
      {connector.state === "STOPPED" ? null : act("Stop", "stop", "It stops.", `Stop ${connector.name} and end its tasks?`)}
      {connector.failed ? act("Restart what failed", "restart-failed", "It starts again.") : null}
      {act("Restart", "restart", "It starts again.")}
    </section>
  );
}
