// Matches of the chosen query, live: as a table and on the timeline; the one that is chosen with its events and facts.

import { events, queryPath } from "../api.js";
import { byId, fill, h } from "../dom.js";
import { timeline } from "../draw/timeline.js";
import { declared, isNumber, shortTerm, shortTime } from "../rdf.js";
import { on, selectedQuery, set, state } from "../state.js";
import { showDetail } from "./detail.js";
import { tell } from "./notices.js";

const KEPT = 400, SHOWN = 120, ON_TIMELINE = 120, RETRY = 1500;
let reading = null;
let planned = false;

export function startMatches() {
  on(["selected"], follow);
  on(["matches", "match", "explanation"], plan);
  new ResizeObserver(plan).observe(byId("timeline"));
}

/** Read the matches of the chosen query, from the first that is kept on. */
async function follow() {
  reading?.abort();
  const name = state.selected;
  const mine = reading = new AbortController();
  let last = null;
  while (name !== null && selectedQuery()?.language !== "sparql" && !mine.signal.aborted) {
    last ??= Math.max(0, (selectedQuery()?.matches.next ?? 1) - 1 - KEPT);
    try {
      for await (const each of events(`${queryPath(name)}/matches?since=${last}`, mine.signal)) {
        if (mine.signal.aborted) return;
        if (each.event === "end") return;
        if (each.id) last = Number(each.id);
        if (each.event === "match") add(JSON.parse(each.data));
      }
    } catch (problem) {
      if (mine.signal.aborted || problem.status === 404) return;
      tell(`matches: ${problem.message}`, "bad");
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY));
  }
}

function add(match) {
  const matches = [...state.matches, match].slice(-KEPT);
  set({ matches, match: state.match ?? null });
}

export const chooseMatch = (id) => set({ match: state.match === id ? null : id });

/** Draw once per frame, however many matches come. */
function plan() {
  if (planned) return;
  planned = true;
  requestAnimationFrame(() => {
    planned = false;
    show();
  });
}

/** GPMs in the order of the query; without an explanation those of the matches. */
export function lanesOf() {
  const gpms = state.explanation?.explanation.gpms?.filter((gpm) => !gpm.negated).map((gpm) => gpm.name);
  return gpms ?? [...new Set(state.matches.flatMap((match) => Object.keys(match.events)))];
}

function show() {
  const { matches, match } = state;
  byId("no-matches").hidden = matches.length > 0;
  byId("match-parts").hidden = matches.length === 0;
  byId("match-count").textContent = matches.length ? `${matches.at(-1).id.toLocaleString("en")} so far` : "";
  const place = byId("timeline");
  const focused = place.contains(document.activeElement) ? document.activeElement.dataset.match : null;
  const drawing = timeline({ matches: matches.slice(-ON_TIMELINE), lanes: lanesOf(), chosen: match,
    width: Math.max(320, place.clientWidth), choose: chooseMatch });
  fill(place, drawing ?? []);
  if (focused) place.querySelector(`[data-match="${focused}"]`)?.focus();
  table();
  showDetail(matches.find((each) => each.id === match) ?? null, lanesOf());
}

function table() {
  const query = selectedQuery();
  const variables = query?.variables ?? [];
  const prefixes = declared(query?.text ?? "");
  const focused = document.activeElement?.closest?.("#matches tr")?.dataset.id;
  fill(byId("matches"), h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "#"), h("th", { scope: "col" }, "time"),
    variables.map((name) => h("th", { scope: "col" }, name)))),
  h("tbody", {}, state.matches.slice(-SHOWN).reverse().map((match) => row(match, variables, prefixes))));
  if (focused) byId("matches").querySelector(`tr[data-id="${focused}"] button`)?.focus();
}

function row(match, variables, prefixes) {
  const here = match.id === state.match;
  return h("tr", { "data-id": match.id, class: here ? "chosen" : null, onclick: () => chooseMatch(match.id) },
    h("td", {}, h("button", { class: "link", "aria-pressed": String(here), "aria-label": `Match ${match.id}` }, match.id)),
    h("td", { class: "nowrap" }, shortTime(match.at)),
    variables.map((name) => h("td", { class: isNumber(match.bindings[name]) ? "number" : null,
      title: match.bindings[name]?.value }, shortTerm(match.bindings[name], prefixes))));
}
