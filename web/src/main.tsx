/** The console's frame: navigation, connection state, the page of the address. */

import { render } from "preact";
import "@preact/signals";
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { connect, connected, live, route } from "./live";
import { Empty } from "./parts/common";
import { GroupPage, Groups } from "./pages/groups";
import { Overview, PartCard } from "./pages/overview";
import { Alarms, PartPage } from "./pages/parts";
import { TopicPage, Topics } from "./pages/topics";
import { ViewPage, Views } from "./pages/views";

const PAGES = [
  ["/", "Overview"],
  ["/views", "Views"],
  ["/topics", "Topics"],
  ["/groups", "Groups"],
  ["/parts", "Parts"],
  ["/alarms", "Alarms"],
] as const;

function Page() {
  const [, page = "", ...rest] = route.value.split("/");
  const name = decodeURIComponent(rest.join("/"));
  switch (page) {
    case "":
      return <Overview />;
    case "topics":
      return name ? <TopicPage name={name} key={name} /> : <Topics />;
    case "groups":
      return name ? <GroupPage name={name} key={name} /> : <Groups />;
    case "views":
      return name ? <ViewPage name={name} key={name} /> : <Views />;
    case "parts":
      return name ? <PartPage id={name} key={name} /> : <div class="cards">{live.value?.parts.map((part) => <PartCard part={part} key={part.kind + part.name} />)}</div>;
    case "alarms":
      return <Alarms />;
    default:
      return <Empty>There is no such page.</Empty>;
  }
}

function App() {
  const state = live.value;
  return (
    <>
      <a class="skip" href="#content">Skip to content</a>
      <header class="top">
        <strong>Tailrace</strong> <span>{state?.project ?? ""}</span>
        <nav aria-label="Pages">
          {PAGES.map(([path, label]) => (
            <a href={`#${path}`} aria-current={route.value === path ? "page" : undefined} key={path}>{label}</a>
          ))}
        </nav>
        <span class={connected.value ? "pulse" : "pulse lost"} role="status">
          {connected.value ? (state?.ready ? "ready" : "starting") : "reconnecting…"}
        </span>
      </header>
      <main id="content" tabIndex={-1}><Page /></main>
    </>
  );
}

connect();
const app = document.getElementById("app");
if (app) {
  app.textContent = "";
  render(<App />, app);
}
