// Matches of the chosen query, live: as a table with pages and on the timeline; the one that is chosen with its events
// and facts. The newest ten thousand are held here; older pages come from the server when somebody turns to them.

import { events, matchesOf, queryPath } from "../api.js";
import { aligned, arrange, byId, fill, h } from "../dom.js";
import { isDragged, timeline } from "../draw/timeline.js";
import { declared, isNumber, shortTerm, shortTime } from "../rdf.js";
import { on, selectedQuery, set, state } from "../state.js";
import { showDetail } from "./detail.js";
import { tell } from "./notices.js";

const KEPT = 10000, AT_ONCE = 2500, PAGE = 100, RETRY = 1500, MANY = 1000, PAUSE = 400, SHARE = 5, LONGEST = 1000;
let reading = null;
let planned = false;
let due = null; // the timer of the next drawing of new matches
let shownAt = 0, took = 0; // when all was drawn last, and for how long: milliseconds

export function startMatches() {
  on(["selected"], follow);
  on(["matches", "match", "page", "view", "moment"], plan);
  on(["explanation"], () => String(lanesOf()) !== drawnLanes && plan()); // it comes each second
  new ResizeObserver(plan).observe(byId("timeline"));
  for (const [id, turn] of [["newest", newest], ["newer", newer], ["older", older], ["oldest", oldest]]) {
    byId(id).addEventListener("click", () => turn().catch((problem) => tell(problem.message, "bad")));
  }
  byId("go-to").addEventListener("change", () => goTo(Number(byId("go-to").value)).catch((problem) => tell(problem.message, "bad")));
  byId("whole").addEventListener("click", () => set({ view: null }));
  byId("zoom-in").addEventListener("click", () => zoom(0.5));
  byId("zoom-out").addEventListener("click", () => zoom(2));
}

/** Read the matches of the chosen query, from the first that is held on. */
async function follow() {
  reading?.abort();
  const name = state.selected;
  const mine = reading = new AbortController();
  let last = null;
  while (name !== null && selectedQuery()?.language !== "sparql" && !mine.signal.aborted) {
    try {
      last ??= await begin(name, mine.signal);
      for await (const each of events(`${queryPath(name)}/matches?after=${last}`, mine.signal)) {
        if (mine.signal.aborted) return;
        if (each.event === "end") return;
        if (each.id) last = Number(each.id);
        if (each.event === "match") add([JSON.parse(each.data)]);
      }
    } catch (problem) {
      if (mine.signal.aborted || problem.status === 404) return;
      tell(`matches: ${problem.message}`, "bad");
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY));
  }
}

/** Read the matches found so far, in large parts; returns the id after which live reading continues. */
async function begin(name, signal) {
  const first = selectedQuery()?.matches.first ?? 1, next = selectedQuery()?.matches.next ?? 1;
  let last = Math.max(first - 1, next - 1 - KEPT);
  while (last < next - 1) {
    const found = await matchesOf(name, last, AT_ONCE, signal);
    if (signal.aborted || !found.length) break;
    add(found);
    last = found.at(-1).id;
  }
  return last;
}

function add(found) {
  state.matches.push(...found);
  if (state.matches.length > KEPT + AT_ONCE) state.matches.splice(0, state.matches.length - KEPT);
  due ??= setTimeout(() => { due = null; plan(); }, shownAt + pause() - performance.now());
}

/** Drawing takes a fifth of the time at most; and nobody sees single ones of many. */
const pause = () => Math.max(took * SHARE, state.matches.length < MANY ? 0 : PAUSE);

export const chooseMatch = (id) => set({ match: state.match === id ? null : id });

let drawnLanes = "";

/** Draw once per frame, however many matches come. */
function plan() {
  if (planned) return;
  planned = true;
  requestAnimationFrame(() => {
    planned = false;
    show();
  });
}

/** GPMs in the order of the query; without an explanation, or where it has none, what the matches name. */
export function lanesOf() {
  const gpms = state.explanation?.explanation.gpms?.filter((gpm) => !gpm.negated).map((gpm) => gpm.name);
  return gpms?.length ? gpms : [...new Set(state.matches.slice(-PAGE).flatMap((match) => Object.keys(match.events)))];
}

function show() {
  const { match } = state;
  const began = performance.now();
  drawnLanes = String(lanesOf());
  const held = state.page ?? state.matches;
  byId("no-matches").hidden = held.length > 0;
  byId("match-parts").hidden = held.length === 0;
  const last = Math.max(state.matches.at(-1)?.id ?? 0, (selectedQuery()?.matches?.next ?? 1) - 1);
  byId("match-count").textContent = last ? `${last.toLocaleString("en")} so far` : "";
  drawTimeline(held);
  table(last);
  showDetail(held.find((each) => each.id === match) ?? state.matches.find((each) => each.id === match) ?? null, lanesOf());
  requestAnimationFrame(() => { // the next frame: layout and painting are done, too
    shownAt = performance.now();
    took = Math.min(shownAt - began, LONGEST); // a tab that is hidden has no frames, for hours perhaps
  });
}

function drawTimeline(held) {
  const place = byId("timeline");
  if (isDragged(place)) return;
  const focused = place.contains(document.activeElement) ? document.activeElement.dataset.match : null;
  const drawing = timeline({ matches: held, lanes: lanesOf(), moment: state.moment && state.moment.at / 1000, chosen: state.match, view: state.view,
    width: Math.max(320, place.clientWidth), choose: chooseMatch, look: (view) => set({ view }) });
  fill(place, drawing?.svg ?? []);
  place.dataset.from = drawing?.from ?? "";
  place.dataset.to = drawing?.to ?? "";
  byId("whole").disabled = state.view === null;
  byId("drawn").textContent = drawing?.words ?? "";
  if (focused) place.querySelector(`[data-match="${focused}"]`)?.focus();
}

/** Look at less (0.5) or more (2) of the time, about the middle or the chosen match. */
function zoom(factor) {
  const from = Number(byId("timeline").dataset.from), to = Number(byId("timeline").dataset.to);
  if (!(to > from)) return;
  const chosen = state.matches.find(({ id }) => id === state.match);
  const at = chosen ? Date.parse(chosen.at) : (from + to) / 2;
  const middle = at >= from && at <= to ? at : (from + to) / 2;
  const half = Math.max(((to - from) * factor) / 2, 1);
  set({ view: { from: middle - half, to: middle + half } });
}

// --- the table and its pages -------------------------------------------------------------------------

const rows = () => state.page ?? state.matches.slice(-PAGE);
let drawnRows = new Map(); // match → its row, of the last drawing
let drawnAs = ""; // the columns and the query's prefixes that they were drawn with

function table(last) {
  const query = selectedQuery();
  const variables = query?.variables ?? [];
  const prefixes = declared(query?.text ?? "");
  const focused = document.activeElement?.closest?.("#matches tr")?.dataset.id;
  const shown = rows();
  const as = `${query?.name} ${variables} ${query?.text}`;
  if (as !== drawnAs) {
    fill(byId("matches"), h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "#"), h("th", { scope: "col" }, "time"),
      variables.map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}));
    drawnRows.clear();
    drawnAs = as;
  }
  drawnRows = new Map([...shown].reverse().map((match) => [match, drawnRows.get(match) ?? row(match, variables, prefixes)]));
  for (const [match, element] of drawnRows) mark(element, match.id === state.match);
  arrange(byId("matches").querySelector("tbody"), [...drawnRows.values()]);
  aligned(byId("matches"));
  if (focused) byId("matches").querySelector(`tr[data-id="${focused}"] button`)?.focus();
  const first = selectedQuery()?.matches?.first ?? 1;
  byId("pages").hidden = last <= PAGE;
  byId("page-of").textContent = shown.length ? `${shown.at(-1).id.toLocaleString("en")} to ${shown[0].id.toLocaleString("en")}` : "";
  byId("newest").disabled = byId("newer").disabled = state.page === null;
  byId("older").disabled = byId("oldest").disabled = !shown.length || shown[0].id <= first;
}

function row(match, variables, prefixes) {
  return h("tr", { "data-id": match.id, onclick: () => chooseMatch(match.id) },
    h("td", {}, h("button", { class: "link", "aria-pressed": "false", "aria-label": `Match ${match.id}` }, match.id)),
    h("td", { class: "nowrap" }, shortTime(match.at)),
    variables.map((name) => {
      const term = match.bindings[name];
      return h("td", { title: term?.value, class: isNumber(term) ? "number" : null }, shortTerm(term, prefixes));
    }));
}

function mark(element, here) {
  element.className = here ? "chosen" : "";
  element.querySelector("button").setAttribute("aria-pressed", String(here));
}

async function newest() {
  set({ page: null });
}

const older = () => upTo((rows()[0]?.id ?? 1) - 1);

async function newer() {
  const after = rows().at(-1)?.id ?? 0;
  if (after + PAGE >= (state.matches.at(-1)?.id ?? 0)) return newest();
  return behind(after);
}

const oldest = () => behind((selectedQuery()?.matches?.first ?? 1) - 1);

/** The page that ends with a match, or is as near to it as there is one. */
async function goTo(id) {
  if (!(id >= 1)) return;
  await upTo(Math.floor(id));
  set({ match: rows().at(-1)?.id ?? null });
}

const upTo = (id) => behind(Math.max(id - PAGE, (selectedQuery()?.matches?.first ?? 1) - 1), id);

async function behind(after, until = after + PAGE) {
  const name = state.selected;
  const found = await matchesOf(name, after, PAGE);
  const page = found.filter((each) => each.id <= until);
  if (name === state.selected && page.length) set({ page });
}
