// The guided example: real stock quotes are replayed, day by day, to a query that looks for V-shapes. All it makes is
// its own: one query, one stream, one graph.

import { queryPath, send, sendJson, streamPath } from "./api.js";
import { byId } from "./dom.js";
import { tell } from "./panels/notices.js";
import { choose } from "./panels/queries.js";
import { put, seePredicates } from "./panels/workbench.js";
import { refresh } from "./poll.js";
import { XSD } from "./rdf.js";
import { set, state } from "./state.js";

const NAME = "guide-v-shape", STREAM = "http://example.org/guide/quotes", GRAPH = "http://example.org/guide/companies";
const PACE = 60; // milliseconds between trading days
let replaying = null;

export function startGuide() {
  for (const id of ["guide", "guide-here"]) byId(id).addEventListener("click", () => (replaying ? stop() : replay()));
}

function stop() {
  replaying?.abort();
}

async function replay() {
  const mine = replaying = new AbortController();
  label("Stop");
  try {
    await begin();
    const { days } = await file("quotes.json").then((response) => response.json());
    const all = Object.entries(days);
    for (let at = 0; at < all.length && !mine.signal.aborted; at++) {
      await push([all[at]]);
      tell(`Replaying stock quotes: ${all[at][0]} (${at + 1} of ${all.length} trading days)`);
      if (at % 10 === 0) refresh();
      await new Promise((resolve) => setTimeout(resolve, PACE));
    }
    await refresh();
    if (!mine.signal.aborted) finish();
    else tell("The example has been stopped. Its query and its stream are still there.");
  } catch (problem) {
    tell(`The example cannot go on: ${problem.message}`, "bad");
  } finally {
    replaying = null;
    label("Guided example");
  }
}

/** Everything as at the beginning: the knowledge base, the stream without events, the query. */
async function begin() {
  tell("Preparing … the first time kernels are compiled, which takes some seconds.");
  const [text, companies] = await Promise.all(["v-shape.spaseq", "companies.ttl"].map((name) => file(name).then((r) => r.text())));
  put(text, "spaseq", NAME);
  if (state.selected === NAME) choose(null);
  await refresh();
  if (state.queries.some((query) => query.name === NAME)) await send(queryPath(NAME), { method: "DELETE" });
  if (state.streams.some((stream) => stream.iri === STREAM)) await send(streamPath(STREAM), { method: "DELETE" });
  await send(`/store?graph=${encodeURIComponent(GRAPH)}`, { method: "PUT", headers: { "Content-Type": "text/turtle" }, body: companies });
  await sendJson("POST", "/queries", { text, language: "spaseq", name: NAME });
  await refresh();
  choose(NAME);
  seePredicates();
  byId("query").scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth", block: "start" });
}

function finish() {
  const last = state.matches.at(-1);
  if (last && state.match === null) set({ match: last.id });
  tell("Done: every bar is a price that fell and came back. Choose one to see its events; change the query and register it again.", "good");
}

async function push(days) {
  const body = days.map(([day, quotes]) => event(day, quotes)).join("");
  await send(streamPath(STREAM), { method: "POST", headers: { "Content-Type": "application/n-quads" }, body });
}

/** A trading day as N-Quads: its graph, and its time in the default graph. */
function event(day, quotes) {
  const graph = `<http://example.org/guide/day/${day}>`;
  const lines = Object.entries(quotes).flatMap(([ticker, [price, volume]]) => {
    const company = `<http://stockmarket.org/company/${ticker}>`;
    return [`${company} <http://example/price> "${price}"^^<${XSD}decimal> ${graph} .`,
      `${company} <http://example/volume> "${volume}"^^<${XSD}integer> ${graph} .`];
  });
  lines.push(`${graph} <http://www.w3.org/ns/prov#generatedAtTime> "${day}T00:00:00Z"^^<${XSD}dateTime> .`);
  return `${lines.join("\n")}\n`;
}

const file = (name) => fetch(`/ui/guide/${name}`, { credentials: "omit" });

function label(text) {
  byId("guide").textContent = text;
}
