/** Subjects of the schema registry: their versions, what changed, what refers to what. */

import { useState } from "preact/hooks";
import * as api from "../api";
import { many } from "../format";
import { Empty, FaultBox, LongTable, useLoaded } from "../parts/common";

/** The subjects, if the project has a registry. */
export function Subjects() {
  const { value, fault } = useLoaded(api.subjects, [], 30_000);
  if (fault) return <section aria-label="Subjects"><h2>Subjects</h2><FaultBox fault={fault} /></section>;
  if (!value || value.registry === null) return null;
  return (
    <section aria-label="Subjects">
      <h2>Subjects</h2>
      <p class="note">Of the schema registry at <code>{value.registry}</code>.</p>
      {value.subjects.length ? (
        <LongTable name="Subjects" columns={["subject"]} items={value.subjects} identify={(subject) => subject}
          cells={(subject) => <td><a href={`#/schemas/${encodeURIComponent(subject)}`}>{subject}</a></td>} />
      ) : <Empty>Nothing is registered yet.</Empty>}
    </section>
  );
}

export function SubjectPage({ name }: { name: string }) {
  const [chosen, choose] = useState<[number | null, number | null]>([null, null]);
  const { value, fault } = useLoaded(() => api.subject(name, ...chosen), [name, ...chosen], 30_000);
  if (fault) return <FaultBox fault={fault} />;
  if (!value) return <Empty>Loading…</Empty>;
  const numbers = value.versions.map((version) => version.version);
  const before = value.before;
  const options = numbers.map((number) => <option key={number} value={number}>{number}</option>);
  return (
    <>
      <h1>{name}</h1>
      <p>{many(value.versions.length + value.left_out, "version")}, compatibility <code>{value.level}</code>.</p>
      {before !== null ? (
        <section aria-label="Changes">
          <h2>Changes</h2>
          <div class="filters">
            <label>from version <select value={before} onChange={(event) => choose([Number(event.currentTarget.value), value.after])}>{options}</select></label>
            <label>to version <select value={value.after} onChange={(event) => choose([before, Number(event.currentTarget.value)])}>{options}</select></label>
          </div>
          {value.lines.length ? (
            <pre class="diff">{value.lines.map((line, at) => <div key={at} class={line.startsWith("+") ? "added" : line.startsWith("−") ? "dropped" : "note"}>{line || " "}</div>)}</pre>
          ) : <p class="note">Their texts are the same.</p>}
        </section>
      ) : null}
      <h2>Versions</h2>
      {value.versions.map((version, at) => (
        <details key={version.version} open={at === 0}>
          <summary><strong>{version.version}</strong> <span class="note">{version.type}, id {version.id}</span></summary>
          {version.references.length ? <p>Refers to {version.references.map((one, number) => <>{number ? ", " : ""}<a href={`#/schemas/${encodeURIComponent(one.subject)}`}>{one.subject}</a> version {one.version} as <code>{one.name}</code></>)}.</p> : null}
          {version.referenced_by.length ? <p>The schemas with the ids {version.referenced_by.join(", ")} refer to it.</p> : null}
          <pre><code>{version.schema}</code></pre>
        </details>
      ))}
      {value.left_out ? <p class="note">{many(value.left_out, "older version")} not shown.</p> : null}
    </>
  );
}
