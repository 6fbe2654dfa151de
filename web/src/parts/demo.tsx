/** The demo's shop as it is now, its plugs, and the database and the views side by side. */

import { useState } from "preact/hooks";
import * as api from "../api";
import { count } from "../format";
import { me } from "../live";
import { barsOf, sparkPath } from "../series";
import type { Row } from "../types";
import { onlyLooks } from "../who";
import { Act, faultOf, Table, useAtTick, useLoaded } from "./common";

const PLUGS = [
  ["pause", "Stop the pipeline for 20 s"],
  ["kill/pipelines", "Kill the pipeline"],
  ["kill/broker", "Kill the broker"],
  ["kill/source", "Kill the capture"],
  ["kill/views", "Kill the views' server"],
  ["kill/sink", "Kill a sink"],
] as const;

const REVENUE = "SELECT minute, sum(revenue) AS revenue FROM revenue_per_minute GROUP BY minute ORDER BY minute DESC LIMIT 60";

export function Demo() {
  return (
    <div class="shop">
      <Plugs />
      <Shop />
    </div>
  );
}

function Plugs() {
  const [did, setDid] = useState("");
  const { value } = useLoaded(api.proof, [], 3000);
  const why = onlyLooks(me.value);
  const say = (work: Promise<{ did: string }>) => void work.then((answer) => setDid(answer.did), (error: unknown) => setDid(faultOf(error).error));
  return (
    <section class="card demo" aria-label="Pull a plug">
      <h2>Pull a plug</h2>
      <p class="plugs">
        {PLUGS.map(([plug, label]) => <button type="button" class="plug" key={plug} disabled={why !== ""} title={why || undefined} onClick={() => say(api.pull(plug))}>{label}</button>)}
      </p>
      <p role="log" class="told">{did}</p>
      {value ? (
        <p>
          Open orders in the database <b data-live="database">{count(value.database.orders)}</b> worth {value.database.value}; in the view{" "}
          {value.view ? (
            <><b data-live="view">{count(value.view.orders)}</b> worth {value.view.value}, caught up in {value.ms} ms{value.view.orders === value.database.orders ? ": equal" : ": the shop went on selling meanwhile"}.</>
          ) : (
            <em>{value.waiting}</em>
          )}
        </p>
      ) : null}
      <Act label="Prove that nothing is lost" work={api.prove} told={(found) => (
        <>
          <p class={found.rows.every((row) => row.equal) ? "good" : "bad"}>
            {found.rows.every((row) => row.equal) ? "Database and views agree to the cent" : "They differ"} at {found.position}; the shop stood still for {found.ms} ms.
          </p>
          <Table name="Database and views" rows={found.rows.map(({ what, database, view }) => ({ "": what, database, view }))} />
        </>
      )} />
      <Act label="Ask Spark itself" work={api.verifyViews} told={(found) => (
        <>
          <p class={found.rows.every((row) => row.equal) ? "good" : "bad"}>
            {found.rows.every((row) => row.equal) ? "The views are what Spark answers to their SQL" : "They differ"}; a Spark of its own was started and asked in {Math.round(found.ms / 1000)} s. <code>tailrace view verify</code> does the same.
          </p>
          <Table name="Spark and views" rows={found.rows.map(({ what, spark, view }) => ({ "": what, spark, view }))} />
        </>
      )} />
      {value?.paid.length ? (
        <ul class="paid" aria-label="Paid lately">
          {value.paid.map((one) => (
            <li key={one.order}>
              <span>order {one.order}, {one.name} ({one.country}), {one.amount}</span> <button type="button" class="quiet" disabled={why !== ""} title={why || undefined} onClick={() => say(api.refund(one.order))}>Refund this order</button>
            </li>
          ))}
        </ul>
      ) : null}
    </section>
  );
}

/** Three of the views as a shopkeeper would look at them. */
function Shop() {
  const open = useAtTick(() => api.viewRows("open_orders"));
  const sellers = useAtTick(() => api.viewRows("best_sellers"));
  const { value: revenue } = useLoaded(() => api.sql(REVENUE), [], 5000);
  const minutes = [...(revenue?.rows ?? [])].reverse().map((row) => Number(row["revenue"]));
  const line = sparkPath(minutes.slice(0, -1)); // this minute has not ended: it would look like a fall
  return (
    <>
      <section class="card" aria-label="Revenue">
        <h2>Revenue per minute <a href="#/views/revenue_per_minute">view</a></h2>
        {line ? (
          <figure>
            <figcaption>this minute <b>{minutes.at(-1)?.toFixed(2)}</b>, last <b>{minutes.at(-2)?.toFixed(2)}</b></figcaption>
            <svg class="spark tiny" style={{ height: "72px" }} viewBox="0 0 100 26" preserveAspectRatio="none" role="img" aria-label={`Revenue of the last ${minutes.length - 1} whole minutes`}>
              <path class="area" d={`${line} V26 H0 Z`} /><path d={line} />
            </svg>
          </figure>
        ) : <p class="note">{minutes.length ? `this minute ${minutes[0]?.toFixed(2)}` : "Nobody has paid yet."}</p>}
        <h2>Open orders <a href="#/views/open_orders">view</a></h2>
        <Bars rows={open?.rows} label="country" value="orders" name="Open orders by country" none="No order is open." />
      </section>
      <section class="card" aria-label="Best sellers">
        <h2>Best sellers <a href="#/views/best_sellers">view</a></h2>
        <Bars rows={sellers?.rows} label="name" value="sold" name="Best sellers" none="Nothing was sold yet." />
      </section>
    </>
  );
}

function Bars({ rows, label, value, name, none }: { rows: Row[] | undefined; label: string; value: string; name: string; none: string }) {
  if (!rows) return <p class="note">Waiting for the first tick…</p>;
  if (rows.length === 0) return <p class="note">{none}</p>;
  return (
    <ol class="bars" aria-label={name}>
      {barsOf(rows, [label], value).map((bar) => (
        <li key={bar.label}><span title={bar.label}>{bar.label}</span><i style={{ width: `${bar.share * 45}%` }} /><b>{count(Number(bar.text))}</b></li>
      ))}
    </ol>
  );
}
