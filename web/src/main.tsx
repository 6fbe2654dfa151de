/** The console's frame: navigation, connection state, keys, the page of the address. */

import { computed, signal } from "@preact/signals";
import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { askEarly, graph, logOut, needed, openSession, tokenOfLink } from "./api";
import { connect, connected, live, locked, loginAt, me, route } from "./live";
import { Empty } from "./parts/common";
import { Broker } from "./pages/broker";
import { Cluster } from "./pages/cluster";
import { ConnectorPage, Connectors } from "./pages/connectors";
import { EventPage, Events } from "./pages/events";
import { GroupPage, Groups } from "./pages/groups";
import { MirrorPage, Mirrors } from "./pages/mirrors";
import { Overview, PartCard } from "./pages/overview";
import { Alarms, PartPage } from "./pages/parts";
import { PatternPage, Patterns } from "./pages/patterns";
import { PercolationPage, Percolations } from "./pages/percolations";
import { PipelinePage, Pipelines } from "./pages/pipelines";
import { SinkPage, Sinks } from "./pages/sinks";
import { Schemas, SourcePage, Sources } from "./pages/sources";
import { SubjectPage, Subjects } from "./pages/subjects";
import { TopicPage, Topics } from "./pages/topics";
import { ViewPage, Views } from "./pages/views";

const PAGES = [
  ["/", "Overview"],
  ["/sources", "Sources"],
  ["/topics", "Topics"],
  ["/pipelines", "Pipelines"],
  ["/views", "Views"],
  ["/patterns", "Patterns"],
  ["/percolations", "Stored queries"],
  ["/sinks", "Sinks"],
  ["/groups", "Groups"],
  ["/schemas", "Schemas"],
  ["/events", "Events"],
  ["/cluster", "Cluster"],
  ["/mirrors", "Mirrors"],
  ["/connectors", "Connectors"],
  ["/alarms", "Alarms"],
] as const;

/** Pages whose links appear where the project declares something for them. */
const OPTIONAL = ["patterns", "percolations", "events", "mirrors", "connectors"];

/** What the navigation shows, and so what the number keys go to. */
const shown = computed(() =>
  PAGES.filter(([path]) => {
    const name = path.slice(1);
    return !OPTIONAL.includes(name) || needed.value?.includes(name) || current(path);
  }),
);

const help = signal(false);
const theme = signal(localStorage.getItem("tailrace-theme") ?? "system");

function Page() {
  const [, page = "", ...rest] = route.value.split("/");
  const name = decoded(rest.join("/"));
  switch (page) {
    case "":
      return <Overview />;
    case "topics":
      return name ? <TopicPage name={name} key={name} /> : <Topics />;
    case "events":
      return name ? <EventPage name={name} key={name} /> : <Events />;
    case "cluster":
      return name ? <><h1>Broker {name}</h1><Broker id={Number(name)} key={name} /></> : <Cluster />;
    case "groups":
      return name ? <GroupPage name={name} key={name} /> : <Groups />;
    case "views":
      return name ? <ViewPage name={name} key={name} /> : <Views />;
    case "pipelines":
      return name ? <PipelinePage name={name} key={name} /> : <Pipelines />;
    case "patterns":
      return name ? <PatternPage name={name} key={name} /> : <Patterns />;
    case "percolations":
      return name ? <PercolationPage name={name} key={name} /> : <Percolations />;
    case "sources":
      return name ? <SourcePage name={name} key={name} /> : <Sources />;
    case "sinks":
      return name ? <SinkPage name={name} key={name} /> : <Sinks />;
    case "mirrors":
      return name ? <MirrorPage name={name} key={name} /> : <Mirrors />;
    case "connectors":
      return name ? <ConnectorPage name={name} key={name} /> : <Connectors />;
    case "schemas":
      return name ? <SubjectPage name={name} key={name} /> : <><Schemas /><Subjects /></>;
    case "parts":
      return name ? <PartPage id={name} key={name} /> : <><h1>Parts</h1><div class="cards">{live.value?.parts.map((part) => <PartCard part={part} key={part.kind + part.name} />)}</div></>;
    case "alarms":
      return <Alarms />;
    default:
      return <Empty>There is no such page. <a href="#/">Overview</a></Empty>;
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function App() {
  const state = live.value;
  const alarms = state?.alarms.length ?? 0;
  const tabs = useRef<HTMLElement>(null);
  useEffect(() => {
    // On a phone the tabs scroll sideways: the one that is open is in sight.
    const open = tabs.current?.querySelector<HTMLElement>("[aria-current]");
    if (tabs.current && open) tabs.current.scrollLeft = open.offsetLeft - tabs.current.offsetLeft - 40;
  }, [route.value]);
  return (
    <>
      <a class="skip" href="#content" onClick={(event) => { event.preventDefault(); document.getElementById("content")?.focus(); }}>Skip to content</a>
      <header class="top">
        <a class="brand" href="#/"><Mark /> Tailrace</a>
        {state ? <span class="project">{state.project}</span> : null}
        <nav aria-label="Pages" ref={tabs}>
          {shown.value.map(([path, label]) => (
            <a href={`#${path}`} aria-current={current(path) ? "page" : undefined} key={path}>{label}{path === "/alarms" && alarms ? <span class="badge">{alarms}</span> : null}</a>
          ))}
        </nav>
        <button type="button" class="quiet" aria-label={`Theme: ${theme.value}`} title={`Theme: ${theme.value} (t)`} onClick={nextTheme}>◐</button>
        <button type="button" class="quiet" aria-label="Keys" title="Keys (?)" onClick={() => (help.value = !help.value)}>?</button>
        <Who />
        <span class={`pulse ${connected.value ? (state?.ready ? "" : "wait") : "lost"}`} role="status">
          {connected.value ? (state?.ready ? "ready" : "starting") : "reconnecting…"}
        </span>
      </header>
      {help.value ? <Keys /> : null}
      <main id="content" tabIndex={-1}>{locked.value ? <Locked /> : <Page />}</main>
    </>
  );
}

/** Water that leaves the wheel: three streams from one. */
function Mark() {
  return (
    <svg viewBox="0 0 24 24" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="2.2" stroke-linecap="round">
      <path d="M2 12h5" /><path d="M7 12c5 0 4-7 15-7" /><path d="M7 12h15" /><path d="M7 12c5 0 4 7 15 7" />
    </svg>
  );
}

/** Who one is here, where that says something. */
function Who() {
  const who = me.value;
  if (!who || (!who.user && who.role === "operator")) return null;
  return (
    <span class="who">
      {who.user ? <b>{who.user}</b> : null} {who.role}
      {who.way === "oidc" ? <> <button type="button" class="quiet" onClick={() => void logOut().then(() => location.reload())}>Log out</button></> : null}
    </span>
  );
}

const refused = signal(false);

function Locked() {
  const open = async (event: SubmitEvent) => {
    event.preventDefault();
    const secret = new FormData(event.currentTarget as HTMLFormElement).get("token") as string;
    if (await openSession(secret.trim())) location.reload();
    else refused.value = true;
  };
  return (
    <form class="card" onSubmit={(event) => void open(event)}>
      <h1>{loginAt.value ? "Log in" : "This console needs its token"}</h1>
      {loginAt.value ? <p><a class="button" href={loginAt.value}>Log in with your company's account</a></p> : null}
      <p class="note">Open the link that <code>tailrace up</code> printed, or paste the text of <code>.tailrace/console.token</code>.</p>
      <label>Token <input type="password" name="token" autocomplete="off" required /></label> <button type="submit">Open</button>
      {refused.value ? <p role="alert">That is not its token.</p> : null}
    </form>
  );
}

function Keys() {
  const first = useRef<HTMLButtonElement>(null);
  useEffect(() => first.current?.focus(), []);
  return (
    <div class="card keys" role="dialog" aria-labelledby="keys-title">
      <h2 id="keys-title">Keys</h2>
      <button type="button" class="quiet close" ref={first} onClick={() => (help.value = false)}>Close</button>
      <dl class="settings">
        {shown.value.slice(0, 9).map(([, label], index) => <div key={label}><dt><kbd>{index + 1}</kbd></dt><dd>{label}</dd></div>)}
        <div><dt><kbd>/</kbd></dt><dd>find</dd></div>
        <div><dt><kbd>t</kbd></dt><dd>switch the theme</dd></div>
        <div><dt><kbd>Esc</kbd></dt><dd>close this</dd></div>
      </dl>
    </div>
  );
}

function current(path: string): boolean {
  return path === "/" ? route.value === "/" : route.value === path || route.value.startsWith(`${path}/`);
}

function nextTheme(): void {
  const order = ["system", "light", "dark"];
  theme.value = order[(order.indexOf(theme.value) + 1) % order.length] ?? "system";
  localStorage.setItem("tailrace-theme", theme.value);
  document.documentElement.dataset["theme"] = theme.value;
}

function press(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if ((event.target as HTMLElement).closest("input, textarea, select")) {
    if (event.key === "Escape") (event.target as HTMLElement).blur();
    return;
  }
  const page = shown.value[Number(event.key) - 1];
  if (page) location.hash = `#${page[0]}`;
  else if (event.key === "?") help.value = !help.value;
  else if (event.key === "Escape") help.value = false;
  else if (event.key === "t") nextTheme();
  else if (event.key === "/") {
    event.preventDefault();
    find(30);
  }
}

/** Go to the page's field for names; it may be about to be drawn. */
function find(frames: number): void {
  const field = document.querySelector<HTMLInputElement>("input[type=search]");
  if (field) field.focus();
  else if (frames) requestAnimationFrame(() => find(frames - 1));
}

async function start(): Promise<void> {
  const secret = tokenOfLink();
  if (secret) {
    route.value = "/";
    await openSession(secret);
  }
  if (route.value === "/") askEarly();
  else graph().catch(() => undefined); // for the navigation; the page asks for itself what it needs
  connect();
  const app = document.getElementById("app");
  if (app) {
    app.textContent = "";
    render(<App />, app);
  }
}

document.documentElement.dataset["theme"] = theme.value;
addEventListener("keydown", press);
addEventListener("hashchange", () => {
  const secret = tokenOfLink(); // a link opened in this tab
  if (secret) void openSession(secret).then(() => location.reload());
});
void start();
