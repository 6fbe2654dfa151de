/** The demo's plugs, and the database and the views side by side. */

import { useState } from "preact/hooks";
import * as api from "../api";
import { count } from "../format";
import { Act, faultOf, Table, useLoaded } from "./common";

const PLUGS = [
  ["pause", "Stop the pipeline for 20 s"],
  ["kill/pipelines", "Kill the pipeline"],
  ["kill/broker", "Kill the broker"],
  ["kill/source", "Kill the capture"],
  ["kill/sink", "Kill a copy"],
] as const;

export function Demo() {
  const [did, setDid] = useState("");
  const { value } = useLoaded(api.proof, [], 3000);
  const say = (work: Promise<{ did: string }>) => void work.then((answer) => setDid(answer.did), (error: unknown) => setDid(faultOf(error).error));
  return (
    <section class="card demo" aria-label="Pull a plug">
      <h2>Pull a plug</h2>
      <p class="plugs">
        {PLUGS.map(([plug, label]) => <button type="button" key={plug} onClick={() => say(api.pull(plug))}>{label}</button>)}
      </p>
      <p role="log">{did}</p>
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
      {value?.paid.length ? (
        <ul class="plain" aria-label="Paid lately">
          {value.paid.map((one) => (
            <li key={one.order}>
              order {one.order}, {one.name} ({one.country}), {one.amount} <button type="button" class="quiet" onClick={() => say(api.refund(one.order))}>Refund this order</button>
            </li>
          ))}
        </ul>
      ) : null}
    </section>
  );
}
