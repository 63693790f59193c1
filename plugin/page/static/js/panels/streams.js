// Streams: how fast events come, and the last of them on request.

import { newestEvents } from "../api.js";
import { breakable, byId, fill, h } from "../dom.js";
import { spark } from "../draw/spark.js";
import { shortIri, shortTime } from "../rdf.js";
import { on, set, state } from "../state.js";
import { graph } from "./graph.js";

const LAST = 5;
const rows = new Map(); // IRI → { row, rate, events }

export function startStreams() {
  on(["streams"], show);
}

function show() {
  const list = byId("streams");
  const here = new Set(state.streams.map(({ iri }) => iri));
  for (const [iri, { row }] of rows) if (!here.has(iri)) { row.remove(); rows.delete(iri); }
  for (const stream of state.streams) {
    if (!rows.has(stream.iri)) {
      rows.set(stream.iri, rowOf(stream));
      list.append(rows.get(stream.iri).row);
    }
    update(rows.get(stream.iri), stream);
  }
  byId("no-streams").hidden = state.streams.length > 0;
}

function rowOf({ iri }) {
  const rate = h("span", { class: "rate", title: "Events per second" }), line = h("span", { class: "spark-place" }), count = h("span", { class: "muted" });
  const events = h("div", { class: "events" });
  const entry = { rate, line, count, events, seen: -1 };
  entry.row = h("details", { class: "entry", ontoggle: () => lastEvents(entry, iri) },
    h("summary", {}, h("span", { class: "name", title: iri }, breakable(shortIri(iri))), line, rate), h("div", { class: "inside" },
      h("p", { class: "iri" }, iri, " · ", count), events));
  return entry;
}

function update(entry, stream) {
  entry.rate.textContent = `${rateText(stream.rate)}/s`;
  entry.count.textContent = `${(stream.next - stream.first).toLocaleString("en")} ${stream.next - stream.first === 1 ? "event" : "events"} kept`;
  fill(entry.line, spark(stream.rates));
  if (entry.row.open) lastEvents(entry, stream.iri);
}

export const rateText = (rate) => (rate >= 10 || rate === 0 ? Math.round(rate).toLocaleString("en") : rate.toFixed(1));

async function lastEvents(entry, iri) {
  const stream = state.streams.find((each) => each.iri === iri);
  if (!entry.row.open || !stream || entry.seen === stream.next) return;
  entry.seen = stream.next;
  const events = (await newestEvents(stream, LAST)).reverse();
  learn(events);
  fill(entry.events, events.map(({ time, triples }) => h("div", { class: "event" }, h("h4", {}, shortTime(time)), graph(triples))));
}

/** Predicates of events are offered while one types. */
export function learn(events) {
  const seen = events.flatMap(({ triples }) => triples.map(([, predicate]) => predicate.value));
  const fresh = seen.filter((iri) => !state.predicates.includes(iri));
  if (fresh.length) set({ predicates: [...new Set([...fresh, ...state.predicates])] });
}
