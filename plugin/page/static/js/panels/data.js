// Put data in: a text or a file as events of a stream, or as a graph of the knowledge base. Files can be dropped anywhere.

import { newestEvents, send, sendJson, streamPath } from "../api.js";
import { byId, fill, h } from "../dom.js";
import { refresh } from "../poll.js";
import { on, state } from "../state.js";
import { firstQuery } from "./first_query.js";
import { ROWS, openMapping, startMapping, tryMapping, wordsOf, writtenMapping } from "./mapping.js";
import { tell } from "./notices.js";
import { put as putQuery, seePredicates } from "./workbench.js";

const FORMATS = [ // name, media type, endings
  ["Turtle", "text/turtle", ["ttl"]], ["N-Quads", "application/n-quads", ["nq"]], ["TriG", "application/trig", ["trig"]],
  ["N-Triples", "application/n-triples", ["nt"]], ["RDF/XML", "application/rdf+xml", ["rdf", "owl", "xml"]],
  ["JSON-LD", "application/ld+json", ["jsonld"]], ["JSON", "application/json", ["json"]],
  ["JSON Lines", "application/x-ndjson", ["jsonl", "ndjson"]], ["CSV", "text/csv", ["csv"]],
];
const ONE_GRAPH = ["text/turtle", "application/n-triples", "application/rdf+xml"]; // an event without a time of its own
const LOOKED = 20; // events whose properties a first query has
const MOST_SHOWN = 20000, MOST_BYTES = 64 * 1024 * 1024;
let whole = null; // the file's whole text, where the box shows only its beginning

export function startData() {
  fill(byId("data-format"), FORMATS.map(([name, type]) => h("option", { value: type }, name)));
  on(["streams"], () => fill(byId("data-streams"), state.streams.map(({ iri }) => h("option", { value: iri }))));
  byId("put-data").addEventListener("click", () => open("stream"));
  byId("data-file").addEventListener("change", () => take(byId("data-file").files[0]));
  byId("data-text").addEventListener("input", () => { whole = null; if (withRows()) tryMapping(rows()); });
  byId("data-iri").addEventListener("change", () => { byId("mapping-text").value = ""; parts(); });
  byId("mapping-text").addEventListener("input", timePart);
  startMapping(rows);
  for (const id of ["data-stream", "data-kb", "data-format"]) byId(id).addEventListener("change", parts);
  byId("data").addEventListener("close", () => { whole = null; });
  byId("data-send").addEventListener("click", (event) => { event.preventDefault(); put(); });
  document.addEventListener("dragover", (event) => event.dataTransfer?.types.includes("Files") && event.preventDefault());
  document.addEventListener("drop", (event) => {
    const [file] = event.dataTransfer?.files ?? [];
    if (!file || !state.live) return;
    event.preventDefault();
    open(/\.(ttl|nt|rdf|owl|xml|jsonld)$/.test(file.name) ? "kb" : "stream");
    take(file);
  });
}

/** Open the form, for a stream or for the knowledge base. */
function open(target) {
  byId(target === "kb" ? "data-kb" : "data-stream").checked = true;
  byId("data-said").textContent = "";
  if (!byId("data").open) byId("mapping-text").value = "";
  if (!byId("data-iri").value && state.streams.length) byId("data-iri").value = state.streams.at(-1).iri;
  parts();
  if (!byId("data").open) byId("data").showModal();
}

const rows = () => ({ text: whole ?? byId("data-text").value, type: byId("data-format").value });
const streamHere = () => state.streams.find(({ iri }) => iri === byId("data-iri").value.trim());
const withRows = () => toStream() && ROWS.includes(byId("data-format").value);
const toStream = () => byId("data-stream").checked;

function parts() {
  byId("data-iri-part").hidden = !toStream();
  byId("data-graph-part").hidden = toStream();
  timePart();
  byId("data-mapping-part").hidden = !withRows();
  if (withRows()) openMapping(streamHere(), rows());
}

/** The time applies to one graph, and to rows of a mapping without a time. */
function timePart() {
  const untimed = withRows() && /"time"\s*:\s*null/.test(byId("mapping-text").value);
  byId("data-time-part").hidden = !toStream() || !(untimed || ONE_GRAPH.includes(byId("data-format").value));
}

async function take(file) {
  if (!file) return;
  if (file.size > MOST_BYTES) return say(`${file.name} has ${Math.round(file.size / 1048576)} MB: load files beyond 64 MB with \`oxiseq push\` or \`oxiseq load\`.`, true);
  const text = await file.text();
  const format = FORMATS.find(([, , endings]) => endings.includes(file.name.split(".").at(-1).toLowerCase()));
  if (format) byId("data-format").value = format[1];
  byId("data-text").value = text.slice(0, MOST_SHOWN);
  whole = text.length > MOST_SHOWN ? text : null;
  say(whole ? `${file.name}: the first ${MOST_SHOWN.toLocaleString("en")} of ${text.length.toLocaleString("en")} characters are shown; all are sent.` : "");
  parts();
}

function say(text, bad = false) {
  byId("data-said").textContent = text;
  byId("data-said").dataset.kind = bad ? "bad" : "";
}

async function put() {
  const body = whole ?? byId("data-text").value, type = byId("data-format").value;
  if (!body.trim()) return say("There is nothing to send.", true);
  byId("data-send").disabled = true;
  try {
    say("Sending …");
    const words = toStream() ? await push(body, type) : await load(body, type);
    byId("data").close();
    const stream = toStream() ? byId("data-iri").value.trim() : null;
    tell(words, "good", stream && [" ", h("button", { class: "link", id: "first-query", onclick: () => writeFirst(stream) }, "Write a query over this stream"), "."]);
    await refresh();
    seePredicates();
  } catch (problem) {
    say(problem.message, true);
  } finally {
    byId("data-send").disabled = false;
  }
  return undefined;
}

/** A draft with the stream's own properties, to begin with. */
async function writeFirst(stream) {
  const events = await newestEvents(state.streams.find(({ iri }) => iri === stream) ?? { iri: stream, first: 0, next: 1 }, LOOKED);
  putQuery(firstQuery(stream, events), "spaseq", "first");
  byId("editor").scrollIntoView({ block: "nearest" });
}

async function push(body, type) {
  const iri = byId("data-iri").value.trim();
  if (!iri) throw new Error("Say which stream: its IRI.");
  const mapping = ROWS.includes(type) ? writtenMapping() : null;
  const changed = mapping !== null && JSON.stringify(mapping) !== JSON.stringify(streamHere()?.mapping);
  if (changed || !streamHere()) await sendJson("PUT", streamPath(iri), changed ? { mapping } : {});
  const time = ONE_GRAPH.includes(type) || mapping?.time === null ? `?time=${encodeURIComponent(byId("data-time").value.trim() || "arrival")}` : "";
  const answer = await (await send(`${streamPath(iri)}${time}`, { method: "POST", headers: { "Content-Type": type }, body })).json();
  const parts = [[answer.accepted, "accepted"], [answer.late, "late"], [answer.rejected, "rejected"], [answer.ignored, "ignored by queries"]];
  const said = parts.filter(([count], i) => i === 0 || count).map(([count, word]) => `${count.toLocaleString("en")} ${word}`).join(", ");
  return `${answer.accepted === 1 && said === "1 accepted" ? "One event is accepted" : `Events: ${said}`}.${answer.reasons?.length ? ` First reason: ${wordsOf(answer.reasons[0])}.` : ""}`;
}

async function load(body, type) {
  const graph = byId("data-graph").value.trim();
  const quads = ["application/n-quads", "application/trig"].includes(type) && !graph;
  const path = graph ? `/store?graph=${encodeURIComponent(graph)}` : quads ? "/store" : "/store?default";
  await send(path, { method: "POST", headers: { "Content-Type": type }, body });
  return `Added to the knowledge base${graph ? `, graph ${graph}` : ""}.`;
}
