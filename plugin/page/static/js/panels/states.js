// A slider through the past states of the automaton: the query is run again over the events that its streams keep, or over
// the stretch that the timeline shows, and the partial matches that waited at each instant are drawn.

import { Problem, getJson, queryPath } from "../api.js";
import { byId } from "../dom.js";
import { shortMicros } from "../rdf.js";
import { on, selectedQuery, set, state } from "../state.js";
import { tell } from "./notices.js";

const POINTS = 200, PACE = 80; // milliseconds between two points while it plays
let points = [], shownFor = null, playing = null;

export function startStates() {
  byId("past-states").addEventListener("click", read);
  byId("moment").addEventListener("input", () => { stop(); look(Number(byId("moment").value)); });
  byId("play").addEventListener("click", () => (playing === null ? play() : stop()));
  byId("now").addEventListener("click", leave);
  on(["selected", "queries"], follow);
}

/** Only a SPAseq query has past states; those of another query are forgotten. */
function follow() {
  byId("past-states").hidden = selectedQuery()?.language !== "spaseq" || points.length > 0;
  if (state.selected === shownFor) return;
  shownFor = state.selected;
  leave();
}

async function read() {
  const name = state.selected;
  byId("past-states").disabled = true;
  try {
    const range = state.view ? `&since=${micros(state.view.from)}&until=${micros(state.view.to) + 1}` : "";
    const found = (await getJson(`${queryPath(name)}/states?points=${POINTS}${range}`)).points;
    if (name !== state.selected) return;
    if (!found.length) return tell("The query’s streams keep no events of that time.");
    points = found;
    byId("moment").max = String(points.length - 1);
    byId("states").hidden = false;
    byId("past-states").hidden = true;
    look(points.length - 1);
    byId("moment").focus();
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    tell(problem.message, "bad");
  } finally {
    byId("past-states").disabled = false;
  }
  return undefined;
}

const micros = (millis) => Math.max(0, Math.floor(millis * 1000));

/** Draw the state at one of the points. */
function look(number) {
  const point = points[number];
  const waiting = Math.max(0, ...point.waiting), { matches } = point;
  const words = `${shortMicros(point.at)} · ${matches.toLocaleString("en")} ${matches === 1 ? "match" : "matches"} until then`;
  byId("moment").value = String(number);
  byId("moment").setAttribute("aria-valuetext", `${words}, ${waiting} waiting at most`);
  byId("moment-words").textContent = words;
  set({ moment: point });
}

/** Move the slider to the end; from the beginning if it is at the end. */
function play() {
  const from = Number(byId("moment").value);
  let at = from === points.length - 1 ? -1 : from;
  byId("play").textContent = "Stop";
  playing = setInterval(() => {
    at += 1;
    look(at);
    if (at === points.length - 1) stop();
  }, PACE);
}

function stop() {
  clearInterval(playing);
  playing = null;
  byId("play").textContent = "Play";
}

/** Back to what waits now. */
function leave() {
  stop();
  points = [];
  byId("states").hidden = true;
  byId("past-states").hidden = selectedQuery()?.language !== "spaseq";
  set({ moment: null });
}
