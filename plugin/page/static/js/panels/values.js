// A number's course under the timeline: choose a predicate of the query's streams; shown is what the match that is looked
// at is about, or else the first subjects that have it. The values are those of the events that the streams keep.

import { newestEvents, select } from "../api.js";
import { byId, fill, h } from "../dom.js";
import { series } from "../draw/series.js";
import { millis } from "../draw/scale.js";
import { declared, isNumber, shortIri, shortTerm } from "../rdf.js";
import { on, selectedQuery, state } from "../state.js";
import { lanesOf } from "./matches.js";
import { tell } from "./notices.js";

const LOOKED = 40, SUBJECTS = 5, MOST = 4000;
const PROV_TIME = "http://www.w3.org/ns/prov#generatedAtTime";
let offered = ""; // the query and streams whose predicates are in the list
let asked = null; // what is being read or has been read
let lines = [];

export function startValues() {
  on(["selected", "explanation"], offer);
  on(["match", "provenance"], read);
  on(["view", "matches", "explanation"], () => requestAnimationFrame(() => requestAnimationFrame(draw))); // behind the timeline
  byId("values").addEventListener("change", read);
  new ResizeObserver(() => requestAnimationFrame(draw)).observe(byId("timeline"));
}

const chosen = () => (byId("values").value ? JSON.parse(byId("values").value) : null); // { stream, predicate }

/** The numeric predicates of the newest events of the streams that the query reads. */
async function offer() {
  const query = selectedQuery();
  const streams = query?.reads ?? [];
  const known = state.streams.filter(({ iri, next }) => streams.includes(iri) && next > 0);
  const key = `${query?.name} ${known.map(({ iri }) => iri)}`;
  if (key === offered || !query) return;
  offered = key;
  const found = new Map();
  try {
    for (const stream of known) {
      for (const { triples } of await newestEvents(stream, LOOKED)) {
        for (const [subject, predicate, object] of triples) {
          if (isNumber(object)) found.set(`${stream.iri} ${predicate.value}`, { stream: stream.iri, predicate: predicate.value, subject });
        }
      }
    }
  } catch {
    offered = ""; // it is tried again with the next state of the server
  }
  const prefixes = declared(query.text);
  fill(byId("values"), h("option", { value: "" }, "none"), [...found.values()].map(({ stream, predicate }) =>
    h("option", { value: JSON.stringify({ stream, predicate }) }, shortIri(predicate, prefixes))));
  lines = [];
  draw();
}

/** The values of what the match is about, from the stream's events. */
async function read() {
  const what = chosen();
  const about = what && subjectsOf(what);
  const key = JSON.stringify([what, about]);
  if (key === asked) return draw();
  asked = key;
  if (!what) {
    lines = [];
    return draw();
  }
  try {
    const rows = await select(question(what, about));
    if (key !== asked) return undefined;
    const groups = new Map();
    for (const { s, v, t } of rows) {
      const name = nameOf(s);
      groups.set(name, [...(groups.get(name) ?? []), { time: millis(t.value), value: Number(v.value) }]);
    }
    lines = [...groups].slice(0, SUBJECTS).map(([name, points]) => ({ name, points: points.sort((a, b) => a.time - b.time) }));
  } catch (problem) {
    tell(`values: ${problem.message}`, "bad");
  }
  return draw();
}

const nameOf = (subject) => (subject.type === "bnode" ? "values" : shortTerm(subject));

/** The subjects whose value is the match's own; else none: then all are shown. */
function subjectsOf({ predicate }) {
  const bound = new Set(Object.values(state.provenance?.bindings ?? {}).map(({ value }) => value));
  const triples = matched(predicate);
  const own = triples.filter(({ triple: [subject, , object] }) => subject.type === "uri" && (bound.has(object.value) || bound.has(subject.value)));
  return [...new Set(own.map(({ triple }) => triple[0].value))].slice(0, SUBJECTS);
}

/** The triples with the predicate in the match's events: those that its patterns matched, where that is known. */
function matched(predicate) {
  const events = state.provenance?.events ?? [];
  const all = events.flatMap((event) => event.triples.map((triple, i) => ({ triple, event, hit: event.matched?.includes(i) })))
    .filter(({ triple }) => triple[1].value === predicate);
  return all.some(({ hit }) => hit) ? all.filter(({ hit }) => hit) : all;
}

const question = ({ stream, predicate }, about) => `SELECT ?s ?v ?t { SERVICE <${stream}> {
  ${about.length ? `VALUES ?s { ${about.map((iri) => `<${iri}>`).join(" ")} }` : ""}
  GRAPH ?event { ?s <${predicate}> ?v } FILTER(isNumeric(?v)) ?event <${PROV_TIME}> ?t
} } ORDER BY DESC(?t) LIMIT ${MOST}`;

function draw() {
  const place = byId("series"), timeline = byId("timeline");
  const what = chosen();
  place.hidden = !what;
  if (!what) return fill(place);
  const from = Number(timeline.dataset.from), to = Number(timeline.dataset.to);
  const lane = timeline.querySelector(".lane");
  if (!lane || !(to > from)) return fill(place);
  const about = subjectsOf(what), lanes = lanesOf();
  const marks = matched(what.predicate).filter(({ triple }) => !about.length || about.includes(triple[0].value))
    .map(({ triple, event }) => ({ name: nameOf(triple[0]), time: millis(event.time), value: Number(triple[2].value), gpm: event.gpm, lane: Math.max(0, lanes.indexOf(event.gpm)) }))
    .sort((a, b) => a.time - b.time);
  const drawings = series({ lines, marks, from, to, left: Number(lane.getAttribute("x")) + 4, width: Math.max(320, timeline.clientWidth) });
  if (!drawings.length) return fill(place, h("p", { class: "empty" }, "The stream keeps no such values of this time."));
  return fill(place, drawings.map((drawing, i) => [h("p", { class: "muted legend" }, h("span", { class: `key line-${i % 6}`, "aria-hidden": "true" }), lines[i]?.name ?? ""), drawing]));
}
