// The answer of the chosen standing query: rows are added and removed as the store changes.

import { events, queryPath } from "../api.js";
import { aligned, byId, fill, h } from "../dom.js";
import { declared, isNumber, shortTerm, shortTime } from "../rdf.js";
import { on, selectedQuery, state } from "../state.js";
import { tell } from "./notices.js";

const SHOWN = 200, RETRY = 1500;
let reading = null;
let answer = null; // rows: key → { row, times, came }; of ASK truth
let planned = false;

export function startAnswer() {
  on(["selected"], follow);
  on(["selected", "queries"], parts);
}

export const isStanding = () => selectedQuery()?.language === "sparql";

/** Which parts the chosen query has. */
function parts() {
  byId("answer-part").hidden = !isStanding();
  byId("matches-part").hidden = isStanding();
  for (const part of document.querySelectorAll(".of-events")) part.hidden = isStanding();
}

/** Read the answer, then what changes of it. */
async function follow() {
  reading?.abort();
  const name = state.selected;
  const mine = reading = new AbortController();
  let last = "";
  answer = { rows: new Map(), truth: null, lastChange: "" };
  plan();
  while (name !== null && isStanding() && !mine.signal.aborted) {
    try {
      for await (const each of events(`${queryPath(name)}/changes${last}`, mine.signal)) {
        if (mine.signal.aborted) return;
        if (each.event === "end") break;
        if (each.event === "snapshot" || each.event === "change") take(each.event, JSON.parse(each.data));
        if (each.id) last = `?after=${each.id}`;
      }
    } catch (problem) {
      if (mine.signal.aborted || problem.status === 404) return;
      tell(`answer: ${problem.message}`, "bad");
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY));
  }
}

function take(kind, { part, rows = [], removed = [], added = [], answer: truth = null, at }) {
  if (kind === "snapshot" && part === 0) answer.rows.clear();
  answer.truth = truth;
  for (const row of rows) count(row, 1, false);
  for (const row of removed) count(row, -1, true);
  for (const row of added) count(row, 1, true);
  answer.lastChange = kind === "snapshot" ? "" : `last change ${shortTime(at.replace(/\.\d+/, ""))}: +${added.length} −${removed.length}`;
  plan();
}

function count(row, times, came) {
  const key = JSON.stringify(Object.entries(row).sort());
  const known = answer.rows.get(key) ?? { row, times: 0, came };
  known.times += times;
  if (known.times > 0) answer.rows.set(key, known);
  else answer.rows.delete(key);
}

/** Draw once per frame, however much comes. */
function plan() {
  if (planned) return;
  planned = true;
  requestAnimationFrame(() => {
    planned = false;
    show();
  });
}

function show() {
  const query = selectedQuery();
  if (!query) return;
  const { rows, truth, lastChange } = answer;
  const total = [...rows.values()].reduce((sum, { times }) => sum + times, 0);
  byId("answer-count").textContent = query.form === "ASK" ? lastChange : `${total.toLocaleString("en")} ${total === 1 ? "row" : "rows"} ${lastChange && `· ${lastChange}`}`;
  if (query.form === "ASK") return fill(byId("answer"), h("p", { class: "mono" }, truth ? "Yes" : "No"));
  const prefixes = declared(query.text);
  const newest = [...rows.values()].slice(-SHOWN).reverse();
  return fill(byId("answer"), aligned(h("table", {}, h("thead", {}, h("tr", {}, query.variables.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, newest.map((each) => drawn(each, query.variables, prefixes))))));
}

function drawn(each, variables, prefixes) {
  const { row, times, came } = each;
  each.came = false;
  return h("tr", { class: came ? "came" : null, title: times > 1 ? `${times} times` : null }, variables.map((name) =>
    h("td", { title: row[name]?.value, class: isNumber(row[name]) ? "number" : null }, shortTerm(row[name], prefixes))));
}
