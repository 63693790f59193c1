// The chosen query's automaton, now or at a past instant, its waits in words; where live keys do not run it the server's
// picture and text.

import { byId, fill, h } from "../dom.js";
import { automaton } from "../draw/automaton.js";
import { on, state } from "../state.js";
import { lanesOf } from "./matches.js";

let before = "";

export function startPlan() {
  on(["explanation", "moment"], show);
  new ResizeObserver(() => { before = ""; requestAnimationFrame(show); }).observe(byId("plan-part"));
}

function show() {
  const key = JSON.stringify([state.explanation, state.moment]);
  if (key === before) return;
  before = key;
  const place = byId("automaton");
  if (!state.explanation) return fill(place);
  const { explanation, waiting, picture, text } = state.explanation;
  const byLiveKeys = explanation.states && !explanation.atoms.length; // else states and atoms, but no groups that wait
  byId("plan-title").textContent = byLiveKeys ? "Automaton" : "Plan";
  if (!byLiveKeys) {
    byId("plan-facts").textContent = "";
    fill(byId("waits"));
    return fill(place, drawn(picture), h("details", { class: "more" }, h("summary", {}, "The plan as text"),
      h("pre", { tabindex: "0" }, text)));
  }
  byId("plan-facts").textContent = `${explanation.sequence} · window ${explanation.window}`;
  fill(place, automaton(explanation, state.moment?.waiting ?? waiting, lanesOf(), place.clientWidth));
  fill(byId("waits"), words(explanation));
}

/** The server's SVG as nodes; its looks are those of drawings.css. */
function drawn(picture) {
  const bare = picture.replace(/<style>.*?<\/style>/s, "");
  return document.importNode(new DOMParser().parseFromString(bare, "image/svg+xml").documentElement, true);
}

function words({ states, edges }) {
  const name = (number) => (number < 0 ? "start" : states.find((each) => each.number === number)?.letter ?? number);
  return edges.flatMap(({ source, op, arms, guards, age, then, lasting, after }) => (arms.length ? arms : [null]).map((arm) => h("li", {},
    h("b", {}, `${name(source)} → ${arm ? name(arm.target) : "end"}`), source < 0 || !arm ? " " : ` ${op} `,
    h("span", { class: "muted" }, [...(age ? [`${age}${then ? `, then ${then}` : ""}`] : []), ...(arm || age ? [] : ["until the window ends"]), ...(after.length ? [`after ${after.join(", ")}`] : []), ...lasting, ...(arm?.conditions ?? []),
      ...guards.map(({ letter, conditions }) => `no ${letter}${arm ? " between" : ""}${conditions.length ? ` (${conditions.join(", ")})` : ""}`)].join(" · ") || "any"))));
}
