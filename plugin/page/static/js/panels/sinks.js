// Where the matches of the chosen query are delivered: its sinks, how each is doing, one more, one less.

import { queryPath, send, sendJson } from "../api.js";
import { byId, fill, h } from "../dom.js";
import { refresh } from "../poll.js";
import { shortTime } from "../rdf.js";
import { on, selectedQuery, state } from "../state.js";
import { tell } from "./notices.js";
import { sinkForm } from "./sink_form.js";

const MAIN = ["url", "path", "topic", "host", "to"]; // settings that say where matches go, the first that a kind has
let form = null, drawn = "";

export function startSinks() {
  form = sinkForm(byId("sink-form"), "sink");
  on(["sinks", "selected"], show);
  byId("add-sink").addEventListener("click", () => {
    form.reset();
    say("");
    byId("sink").showModal();
  });
  byId("sink-send").addEventListener("click", (event) => { event.preventDefault(); add(); });
}

const sinkPath = (query, id) => `${queryPath(query)}/sinks/${encodeURIComponent(id)}`;

/** Deliver a query's matches to a sink, behind the match `after` or from now on. Throws Problem. */
export const putSink = (query, { id, settings }, after = null) =>
  sendJson("PUT", sinkPath(query, id), { ...settings, ...(after === null ? {} : { after }) });

function say(text) {
  byId("sink-said").textContent = text;
  byId("sink-said").dataset.kind = "bad";
}

async function add() {
  byId("sink-send").disabled = true;
  try {
    const sink = form.value();
    await putSink(state.selected, sink, byId("sink-all").checked ? 0 : null);
    byId("sink").close();
    tell(`Matches of ${state.selected} are delivered to ${sink.id}.`, "good");
    await refresh();
  } catch (problem) {
    say(problem.message);
  } finally {
    byId("sink-send").disabled = false;
  }
}

function show() {
  const query = selectedQuery();
  byId("sinks-part").hidden = !query || query.language === "sparql";
  const key = JSON.stringify([query?.name, state.sinks]);
  if (key === drawn) return;
  drawn = key;
  byId("no-sinks").hidden = state.sinks.length > 0;
  fill(byId("sinks"), state.sinks.length ? table(state.sinks, query.name) : []);
}

function table(sinks, query) {
  const heads = ["name", "kind", "to", "state", "delivered", "waiting", "lost", ""];
  return h("table", {}, h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", {}, sinks.map((sink) => h("tr", {}, h("td", {}, sink.id), h("td", {}, sink.kind), h("td", {}, placeOf(sink)),
      h("td", {}, stateOf(sink)), ["delivered", "waiting", "lost"].map((name) => h("td", { class: "number" }, sink[name].toLocaleString("en"))),
      h("td", {}, sink.declared ? "in the settings" : h("button", { class: "small quiet", "aria-label": `Delete the sink ${sink.id}`, onclick: () => remove(query, sink.id) }, "Delete"))))));
}

function placeOf(sink) {
  const place = MAIN.map((name) => sink[name]).find((value) => value !== undefined && value !== null) ?? "";
  return place.env ?? place.file ?? String(place); // an address that is kept as a secret is shown by its name
}

function stateOf(sink) {
  if (sink.state !== "failing") return sink.state;
  const again = sink.next_try ? `, tried again at ${shortTime(sink.next_try)}` : "";
  return h("span", { class: "bad" }, `failing since ${shortTime(sink.failing_since)}: ${sink.error}${again}`);
}

async function remove(query, id) {
  if (!confirm(`Deliver no more matches of ${query} to ${id}?`)) return;
  try {
    await send(sinkPath(query, id), { method: "DELETE" });
    await refresh();
  } catch (problem) {
    tell(problem.message, "bad");
  }
}
