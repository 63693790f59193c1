// The match that is looked at: its events' graphs with their times, and what the knowledge base says of what they name.

import { select } from "../api.js";
import { byId, fill, h } from "../dom.js";
import { XSD, shortIri, shortTime } from "../rdf.js";
import { selectedQuery } from "../state.js";
import { graph } from "./graph.js";

const MOST_EVENTS = 40, MOST_FACTS = 60;
let shown = null;

export async function showDetail(match, lanes) {
  const panel = byId("detail");
  panel.hidden = !match;
  const key = match && `${selectedQuery()?.name} ${match.id}`;
  if (key === shown) return;
  shown = key;
  if (!match) return;
  byId("detail-title").textContent = `Match ${match.id}`;
  const body = byId("detail-body");
  fill(body, h("p", { class: "muted" }, "…"));
  try {
    const parts = await events(match, lanes);
    const facts = await knowledge(parts, match);
    if (key === shown) fill(body, ...parts.map(card), facts);
  } catch (problem) {
    if (key === shown) fill(body, h("p", { class: "bad" }, problem.message));
  }
}

/** [{ gpm, lane, stream, time, triples }] in order of time, as far as the streams keep them. */
async function events(match, lanes) {
  const order = Object.keys(match.events);
  const wanted = order.flatMap((gpm) => match.events[gpm].map((event) => ({ gpm, lane: lanes.indexOf(gpm), ...event })));
  const found = wanted.sort((a, b) => a.time.localeCompare(b.time)).slice(0, MOST_EVENTS);
  const streams = [...new Set(found.map(({ stream }) => stream))];
  const graphs = new Map();
  for (const stream of streams) {
    const times = [...new Set(found.filter((each) => each.stream === stream).map(({ time }) => time))];
    for (const { time, s, p, o, t } of await select(eventQuery(stream, times))) {
      const key = `${stream} ${Date.parse(t.value)}`;
      graphs.set(key, [...(graphs.get(key) ?? []), [s, p, o]]);
    }
  }
  return found.map((each) => ({ ...each, triples: graphs.get(`${each.stream} ${Date.parse(each.time)}`) ?? [] }));
}

const eventQuery = (stream, times) => `SELECT ?t ?s ?p ?o { SERVICE <${stream}> {
  ?event <http://www.w3.org/ns/prov#generatedAtTime> ?t . GRAPH ?event { ?s ?p ?o }
  FILTER(?t IN (${times.map((time) => `"${time}"^^<${XSD}dateTime>`).join(", ")})) } } ORDER BY ?t ?s ?p`;

function card({ gpm, lane, stream, time, triples }) {
  return h("section", { class: "card-event" },
    h("h4", {}, h("span", { class: `tag gpm-${(lane < 0 ? 0 : lane) % 8}` }, gpm), " ", shortTime(time),
      h("span", { class: "muted", title: stream }, " ", shortIri(stream))),
    triples.length ? graph(triples) : h("p", { class: "muted" }, "The stream keeps this event no longer."));
}

/** Facts about the IRIs of the match's rows and events, from the graphs that the query asks. */
async function knowledge(parts, match) {
  const text = selectedQuery()?.text ?? "";
  const graphs = graphsOf(text);
  const bound = Object.values(match.bindings).filter((term) => term.type === "uri").map((term) => term.value);
  const named = parts.flatMap(({ triples }) => triples.flatMap(([subject, , object]) => [subject, object]))
    .filter((term) => term.type === "uri").map((term) => term.value);
  const iris = [...new Set([...bound, ...named])].slice(0, 50);
  if (!graphs.length || !iris.length) return null;
  const rows = await select(`SELECT ?s ?p ?o { VALUES ?g { ${bracketed(graphs)} } VALUES ?s { ${bracketed(iris)} }
    GRAPH ?g { ?s ?p ?o } } ORDER BY ?s ?p LIMIT ${MOST_FACTS}`);
  const values = new Set(Object.values(match.bindings).map((term) => term.value));
  const known = Map.groupBy ? [...Map.groupBy(rows, ({ s }) => s.value).values()] : [rows];
  const used = known.filter((group) => group.some(({ s, o }) => values.has(o.value) || bound.includes(s.value)));
  const kept = (used.length ? used : known).flat();
  if (!kept.length) return null;
  return h("section", { class: "card-event facts" },
    h("h4", {}, h("span", { class: "tag" }, "KB"), " what the knowledge base says"), graph(kept.map(({ s, p, o }) => [s, p, o])));
}

const bracketed = (iris) => iris.map((iri) => `<${iri}>`).join(" ");

function graphsOf(text) {
  return [...new Set([...text.matchAll(/\bGRAPH\s*<([^>\s]+)>/gi)].map(([, iri]) => iri))];
}
