/** The time machine: a view as it was at an earlier tick, beside what it is now. */

import { useEffect, useState } from "preact/hooks";
import * as api from "../api";
import { count, moment } from "../format";
import { differing } from "../rows";
import type { Fault, Past, Row } from "../types";
import { Empty, FaultBox, faultOf, Table } from "./common";

export function PastOf({ name, now }: { name: string; now: Map<string, Row> | null }) {
  const [open, setOpen] = useState(false);
  return (
    <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>What it was earlier</summary>
      {open ? <Machine name={name} now={now} /> : null}
    </details>
  );
}

function Machine({ name, now }: { name: string; now: Map<string, Row> | null }) {
  const [past, setPast] = useState<Past | null>(null);
  const [tick, setTick] = useState<number | null>(null);
  const [fault, setFault] = useState<Fault | null>(null);
  useEffect(() => {
    let gone = false;
    // Wait until the slider rests: every place on it is a question.
    const timer = setTimeout(() => {
      api.past(name, tick ?? undefined).then(
        (found) => {
          if (gone) return;
          setPast(found);
          setFault(null);
          if (tick === null && found.span) setTick(found.span[1].tick);
        },
        (error: unknown) => { if (!gone) setFault(faultOf(error)); },
      );
    }, tick === null ? 0 : 200);
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [name, tick]);
  if (!past) return fault ? <FaultBox fault={fault} /> : <Empty>Looking for ticks…</Empty>;
  if (!past.span) return <Empty>Nothing has ticked yet.</Empty>;
  const [oldest, newest] = past.span;
  const differ = past.rows && now ? differing(past.rows, [...now.values()]) : null;
  return (
    <>
      <p class="filters">
        <label>Tick <input type="range" aria-label="Tick" min={oldest.tick} max={newest.tick} value={tick ?? newest.tick} onInput={(event) => setTick(Number(event.currentTarget.value))} /></label>
        <label>or <input type="number" aria-label="Tick number" min={oldest.tick} max={newest.tick} value={tick ?? newest.tick} onInput={(event) => setTick(Number(event.currentTarget.value))} /></label>
        {past.at ? <span data-live="past">tick {past.tick}, {moment(past.at)}</span> : null}
      </p>
      {fault ? <FaultBox fault={fault} /> : null}
      {past.rows && !fault ? (
        <>
          <p class="note">{count(past.rows.length)} rows{differ === null ? "" : differ === 0 ? ", as now" : `, ${count(differ)} not as now`}</p>
          {past.rows.length ? <Table rows={past.rows} name={`${name} at an earlier tick`} /> : <Empty>It had no rows.</Empty>}
        </>
      ) : null}
    </>
  );
}
