// The list of registered queries: state, rate, lag, late events, matches; choose, pause, edit or delete one.

import { queryPath, send, sendJson } from "../api.js";
import { arrange, byId, h } from "../dom.js";
import { refresh } from "../poll.js";
import { on, set, state } from "../state.js";
import { rateText } from "./streams.js";
import { tell } from "./notices.js";

let edit = () => {};

export function startQueries(editText) {
  edit = editText;
  on(["queries", "selected"], show);
  on(["queries", "selected"], head);
}

export const choose = (name) => set({ selected: name, explanation: null, sinks: [], matches: [], match: null, moment: null, page: null, view: null, provenance: null });

const drawn = new Map(); // name → { key, element }: of two hundred queries few change in a second

function show() {
  const focused = document.activeElement?.dataset?.query;
  for (const name of drawn.keys()) if (!state.queries.some((query) => query.name === name)) drawn.delete(name);
  arrange(byId("queries"), state.queries.map(entryOf));
  if (focused) byId("queries").querySelector(`[data-query="${CSS.escape(focused)}"]`)?.focus();
  byId("no-queries").hidden = state.queries.length > 0;
}

function entryOf(query) {
  const { name, state: working, error, language, rows, matches, rate, lag, late } = query;
  const key = JSON.stringify([working, error, language, rows, matches, rateText(rate ?? 0), lag, late, name === state.selected]);
  if (drawn.get(name)?.key !== key) drawn.set(name, { key, element: entry(query) });
  return drawn.get(name).element;
}

function entry(query) {
  const here = query.name === state.selected;
  return h("li", {}, h("button", { class: "entry-button", "data-query": query.name, "aria-pressed": String(here),
    onclick: () => choose(query.name) },
    h("span", { class: "name" }, h("span", { class: "dot", "data-state": query.error ? "bad" : query.state }), query.name),
    h("span", { class: "muted" }, query.language),
    h("span", { class: "figures" }, query.language === "sparql" ? figure(query.rows === 1 ? "row" : "rows", query.rows.toLocaleString("en")) : [
      figure(query.matches.next === 2 ? "match" : "matches", (query.matches.next - 1).toLocaleString("en")), figure("events/s", rateText(query.rate), { title: "Events that the query reads, per second" }),
      figure(query.lag === 1 ? "event behind" : "events behind", query.lag === null || query.lag === undefined ? "–" : query.lag.toLocaleString("en"), { title: "Events that are acknowledged and that the query has not read yet" }),
      figure(query.late === 1 ? "late event" : "late events", query.late.toLocaleString("en"), { title: "Events that came after their instant was complete: they are counted and left out", warn: query.late > 0 })])));
}

const figure = (name, value, { title = null, warn = false } = {}) =>
  h("span", { class: warn ? "figure warn" : "figure", title }, h("b", {}, value), " ", name);

/** The heading of the part about the chosen query. */
function head() {
  const query = state.queries.find((each) => each.name === state.selected);
  byId("query").hidden = !query;
  if (!query) return;
  byId("query-name").textContent = query.name;
  const said = query.language === "sparql" ? [query.state, query.evaluation, query.reason] : [query.state, `${query.events.toLocaleString("en")} ${query.events === 1 ? "event" : "events"} read`, query.feeds && `feeds ${query.feeds}`];
  byId("query-facts").textContent = said.filter(Boolean).join(" · ");
  const error = byId("query-error");
  error.hidden = !query.error;
  error.textContent = query.error ?? "";
  byId("pause").textContent = query.state === "running" ? "Pause" : "Resume";
}

export function startActions() {
  byId("pause").addEventListener("click", () => act(() => {
    const running = state.queries.find(({ name }) => name === state.selected)?.state === "running";
    return sendJson("PATCH", queryPath(state.selected), { state: running ? "paused" : "running" });
  }));
  byId("edit").addEventListener("click", () => {
    const query = state.queries.find(({ name }) => name === state.selected);
    if (query) edit(query);
  });
  byId("delete").addEventListener("click", () => {
    if (confirm(`Forget the query ${state.selected} and its matches?`)) {
      act(async () => { await send(queryPath(state.selected), { method: "DELETE" }); choose(null); });
    }
  });
}

async function act(work) {
  try {
    await work();
    await refresh();
  } catch (problem) {
    tell(problem.message, "bad");
  }
}
