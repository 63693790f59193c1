// Looking back: why the chosen query matched or did not, and what the editor's text would have found instead, over the
// events that the streams keep. A change that has been previewed can be deployed.

import { Problem, queryPath, send, sendJson } from "../api.js";
import { byId, fill, h } from "../dom.js";
import { declared } from "../rdf.js";
import { refresh } from "../poll.js";
import { on, selectedQuery, state } from "../state.js";
import { isStanding } from "./answer.js";
import { difference } from "./difference.js";
import { tell } from "./notices.js";
import { reasons } from "./why.js";
import { draft, point } from "./workbench.js";

let shownFor = null;
let asking = null;
let previewed = null; // { name, text, language }: what the preview was of

export function startPast() {
  byId("why").addEventListener("click", why);
  byId("compare").addEventListener("click", compare);
  byId("deploy").addEventListener("click", deploy);
  on(["selected", "queries"], follow);
}

/** Another query is chosen: what was found is of another one. */
function follow() {
  if (state.selected === shownFor) return;
  shownFor = state.selected;
  asking?.abort();
  show(null);
}

const why = () => look("why", async (name, range, signal) => {
  if (isStanding()) range = "";
  const response = await send(`${queryPath(name)}/why${range}`, { headers: { Accept: "application/json" }, signal });
  return reasons(await response.json(), declared(selectedQuery()?.text ?? ""));
});

const compare = () => look("compare", async (name, range, signal) => {
  const { text, language, type } = draft();
  if (language === "sparql") throw new Problem(0, { title: "The editor holds SPARQL. Choose the language of a query over streams there, and change its text: what it finds is compared with this query." });
  const response = await send(`${queryPath(name)}/compare${range}`, { method: "POST", headers: { "Content-Type": type }, body: text, signal });
  const drawn = difference(await response.json(), name, declared(text));
  previewed = { name, text, language };
  return drawn;
});

/** The text that was previewed takes the query's place, with the query's options. */
async function deploy() {
  const { name, text, language } = previewed;
  const query = selectedQuery();
  if (query?.name !== name) return;
  byId("deploy").disabled = true;
  try {
    const { lateness, max_state_records, max_state_bytes, on_state_limit } = query;
    await sendJson("PUT", queryPath(name), { text, language, lateness, max_state_records, max_state_bytes, on_state_limit });
    await refresh();
    show(null);
    tell(`${name} has the new text: it matches what is pushed from now on.`, "good");
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    tell(problem.message, "bad");
    point(problem);
  } finally {
    byId("deploy").disabled = false;
  }
}

async function look(button, work) {
  asking?.abort();
  const mine = asking = new AbortController();
  previewed = null;
  byId(button).disabled = true;
  show(h("p", { class: "muted" }, "Looking … the first time kernels are compiled, which takes some seconds."));
  try {
    const found = await work(state.selected, range(), mine.signal);
    if (mine !== asking) return;
    show(found);
    tell(byId("past").querySelector(".verdict")?.textContent ?? "");
  } catch (problem) {
    if (!(problem instanceof Problem) && problem.name !== "AbortError") throw problem;
    if (mine !== asking || problem.name === "AbortError") return;
    show(h("p", { class: "bad" }, problem.message));
    if (button === "compare") point(problem);
  } finally {
    byId(button).disabled = false;
  }
}

function show(content) {
  const place = byId("past");
  place.hidden = content === null;
  if (content === null) previewed = null;
  byId("deploy").hidden = previewed === null || previewed.text === selectedQuery()?.text;
  fill(place, content ?? []);
}

/** The query string of the two fields, which are in UTC. */
function range() {
  const given = ["since", "until"].map((name) => [name, byId(`past-${name}`).value]).filter(([, value]) => value);
  const text = new URLSearchParams(given.map(([name, value]) => [name, `${/T\d\d:\d\d$/.test(value) ? `${value}:00` : value}Z`]));
  return given.length ? `?${text}` : "";
}
