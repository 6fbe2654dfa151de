/** A broker of the log: where it listens, what it keeps, and its settings. */

import { useState } from "preact/hooks";
import * as api from "../api";
import { bytes, many, rate, setting } from "../format";
import { live } from "../live";
import { Chart, Empty, FaultBox, State, useLoaded } from "../parts/common";

export function Broker({ id }: { id: number }) {
  const { value: about, fault } = useLoaded(() => api.broker(id), [id], 10_000);
  const [wanted, setWanted] = useState("");
  const [all, setAll] = useState(false);
  if (fault) return <FaultBox fault={fault} />;
  if (!about) return null;
  const part = live.value?.parts.find((one) => one.kind === "broker");
  const names = Object.keys(about.config).filter((name) => (all || about.changed.includes(name) || wanted) && name.includes(wanted));
  return (
    <section aria-label={`Broker ${id}`}>
      <h2>{about.address} {part ? <State state={part.state} /> : null}</h2>
      <p class="note">
        broker {id}{about.controller ? ", controller" : ""}{about.rack ? `, rack ${about.rack}` : ""}, leads {many(about.leaders, "partition")} of {about.replicas}
        {about.bytes >= 0 ? `, ${bytes(about.bytes)}` : ""}{typeof part?.["connections"] === "number" ? `, ${many(part["connections"], "connection")}` : ""}
      </p>
      {part ? <Chart series="all:rate" label="records a second" unit={rate} /> : null}
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label>Setting <input type="search" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} /></label>
        <label><input type="checkbox" checked={all} onChange={(event) => setAll(event.currentTarget.checked)} /> all {Object.keys(about.config).length}</label>
      </form>
      {names.length === 0 ? <Empty>{wanted ? `No setting has “${wanted}” in its name.` : "Every setting has its default."}</Empty> : null}
      <dl class="settings">
        {names.map((name) => (
          <div key={name} class={about.changed.includes(name) ? "changed" : ""} title={about.about[name]}>
            <dt>{name}</dt>
            <dd>{about.config[name] === null ? "hidden" : setting(name, about.config[name] ?? "")}{about.changed.includes(name) ? <em> not the default</em> : null}{about.fixed.includes(name) ? <em> (at the start alone)</em> : null}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
