// Polls the server once a second while the page is visible: streams, queries, counts per state.

import { getJson, queryPath } from "./api.js";
import { set, state } from "./state.js";

const EVERY = 1000, KEPT = 60;
let asking = null;
let again = null;

/** Poll now, and again each second. */
export async function refresh() {
  clearTimeout(again);
  asking ??= ask().finally(() => { asking = null; });
  await asking;
  clearTimeout(again);
  if (state.live !== false && !document.hidden) again = setTimeout(refresh, EVERY);
}

document.addEventListener("visibilitychange", () => document.hidden || refresh());

/** What kind of server this is; and the languages of continuous queries, from its description of itself. */
export async function discover() {
  const server = await getJson("/ui/server.json");
  set({ server, live: server.live });
  status(true);
  if (!server.live) return;
  const { components } = await getJson("/openapi.json");
  set({ languages: components.schemas.Language["x-languages"], sinkKinds: components.schemas.NewSink.oneOf });
}

async function ask() {
  try {
    const [{ streams }, { queries }] = await Promise.all([getJson("/streams"), getJson("/queries")]);
    const now = performance.now();
    set({ streams: streams.map((each) => rated(each, state.streams, "iri", each.next, now)),
      queries: queries.map((each) => rated(each, state.queries, "name", each.events, now)) });
    status(true);
    if (state.server.upstream) set({ kb: await getJson("/kb") });
    await explain();
  } catch (error) {
    status(false, error);
  }
}

/** With events per second, and those of the last minute. */
function rated(each, before, key, count, at) {
  const known = before.find((other) => other[key] === each[key]);
  if (!known || count < known.count) return { ...each, count, at, rate: 0, rates: [] };
  const rate = ((count - known.count) * 1000) / Math.max(at - known.at, 1);
  return { ...each, count, at, rate, rates: [...known.rates, rate].slice(-KEPT) };
}

async function explain() {
  const name = state.selected;
  const query = state.queries.find((each) => each.name === name);
  if (!query || (query.language === "sparql" && query.state !== "running")) return set({ explanation: null });
  const [explanation, { sinks }] = await Promise.all([getJson(`${queryPath(name)}/explanation`),
    query.language === "sparql" ? { sinks: [] } : getJson(`${queryPath(name)}/sinks`)]);
  if (state.selected === name) set({ explanation, sinks });
}

function status(good, error) {
  const dot = document.getElementById("status");
  dot.dataset.state = good ? "good" : "bad";
  dot.title = good ? "connected" : `no answer: ${error.message}`;
  dot.querySelector(".words").textContent = good ? "connected" : "no answer";
}
