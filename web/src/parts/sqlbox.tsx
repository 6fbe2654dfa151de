/** SQL over the views: names complete while one types; what was asked before, and what one keeps. */

import { useRef, useState } from "preact/hooks";
import * as api from "../api";
import { complete, type Completion, type Names } from "../completion";
import { many } from "../format";
import { Kept } from "../kept";
import type { Fault, Rows } from "../types";
import { FaultBox, faultOf, Table, useLoaded } from "./common";

const asked = new Kept("tailrace-sql-history", 30);
const saved = new Kept("tailrace-sql-saved", 100);

export function SqlBox({ first }: { first: string }) {
  const [text, setText] = useState(first);
  const [answer, setAnswer] = useState<Rows | null>(null);
  const [fault, setFault] = useState<Fault | null>(null);
  const [caret, setCaret] = useState<number | null>(null);
  const [chosen, setChosen] = useState(0);
  const [, redraw] = useState(0);
  const area = useRef<HTMLTextAreaElement>(null);
  const { value: about } = useLoaded(() => api.views().catch(() => null), []);
  const names: Names = about?.views.map((view) => ({ name: view.name, columns: view.columns.map(([column]) => column) })) ?? [];
  // Of what is known now: the names may come when one has typed already.
  const offer: Completion | null = caret === null ? null : complete(text, caret, names);
  const ask = (sql = text) => {
    setCaret(null);
    asked.add(sql);
    return api.sql(sql).then(
      (found) => {
        setAnswer(found);
        setFault(null);
      },
      (error: unknown) => {
        setAnswer(null); // rows of another question
        setFault(faultOf(error));
      },
    );
  };
  const type = (value: string, caret: number) => {
    setText(value);
    setChosen(0);
    setCaret(caret);
  };
  const take = (word: string) => {
    if (!offer) return;
    const now = text.slice(0, offer.from) + word + text.slice(offer.to);
    setText(now);
    setCaret(null);
    requestAnimationFrame(() => {
      area.current?.focus();
      area.current?.setSelectionRange(offer.from + word.length, offer.from + word.length);
    });
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      void ask();
    } else if (offer?.words.length) {
      const word = offer.words[chosen];
      if (event.key === "Escape") setCaret(null);
      else if (event.key === "ArrowDown") setChosen((chosen + 1) % offer.words.length);
      else if (event.key === "ArrowUp") setChosen((chosen + offer.words.length - 1) % offer.words.length);
      else if ((event.key === "Tab" || event.key === "Enter") && word) take(word);
      else return;
      event.preventDefault();
      event.stopPropagation();
    }
  };
  const open = (sql: string) => {
    setText(sql);
    setCaret(null);
    area.current?.focus();
  };
  return (
    <form class="sql" onSubmit={(event) => { event.preventDefault(); void ask(); }}>
      <textarea aria-label="SQL" ref={area} rows={3} value={text} spellcheck={false} autocomplete="off"
        aria-controls="completions" aria-autocomplete="list" aria-activedescendant={offer ? `completion-${chosen}` : undefined}
        onInput={(event) => type(event.currentTarget.value, event.currentTarget.selectionStart)}
        onKeyDown={press} onBlur={() => setCaret(null)} />
      <ul id="completions" role="listbox" aria-label="Names" class="completions" hidden={!offer}>
        {offer?.words.map((word, index) => (
          <li key={word} id={`completion-${index}`} role="option" aria-selected={index === chosen} onMouseDown={(event) => { event.preventDefault(); take(word); }}>{word}</li>
        ))}
      </ul>
      <button type="submit">Run</button> <span class="note">Ctrl+Enter</span>{" "}
      <button type="button" class="quiet" onClick={() => { saved.add(text); redraw(Date.now()); }}>Save</button>
      <Queries title="Saved queries" kept={saved} open={open} remove={(sql) => { saved.remove(sql); redraw(Date.now()); }} />
      <Queries title="Asked before" kept={asked} open={open} />
      {fault ? <FaultBox fault={fault} /> : null}
      {answer ? (
        <>
          <p class="note">{many(answer.rows.length, "row")} at {answer.position ?? "–"}</p>
          <Table rows={answer.rows} name="SQL result" />
        </>
      ) : null}
    </form>
  );
}

/** Queries that this browser keeps; one is opened by a click. */
function Queries({ title, kept, open, remove }: { title: string; kept: Kept; open: (sql: string) => void; remove?: (sql: string) => void }) {
  const all = kept.all();
  if (!all.length) return null;
  return (
    <details class="queries">
      <summary>{title} ({all.length}), kept in this browser</summary>
      <ul>
        {all.map((sql) => (
          <li key={sql}>
            <button type="button" class="quiet" onClick={() => open(sql)}><code>{sql}</code></button>
            {remove ? <button type="button" class="quiet" aria-label={`Remove ${sql}`} onClick={() => remove(sql)}>×</button> : null}
          </li>
        ))}
      </ul>
    </details>
  );
}
