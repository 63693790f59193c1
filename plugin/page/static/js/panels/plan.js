// The chosen query's automaton, its waits in words; of other languages than SPAseq the server's picture and text.

import { byId, fill, h } from "../dom.js";
import { automaton } from "../draw/automaton.js";
import { on, state } from "../state.js";
import { lanesOf } from "./matches.js";

let before = "";

export function startPlan() {
  on(["explanation"], show);
}

function show() {
  const key = JSON.stringify(state.explanation);
  if (key === before) return;
  before = key;
  const place = byId("automaton");
  if (!state.explanation) return fill(place);
  const { explanation, waiting, picture, text } = state.explanation;
  byId("plan-title").textContent = explanation.states ? "Automaton" : "Plan";
  if (!explanation.states) {
    byId("plan-facts").textContent = "";
    fill(byId("waits"));
    return fill(place, drawn(picture), h("details", { class: "more" }, h("summary", {}, "All of it"),
      h("pre", { tabindex: "0" }, text)));
  }
  byId("plan-facts").textContent = `${explanation.sequence} · window ${explanation.window}`;
  fill(place, automaton(explanation, waiting, lanesOf()));
  fill(byId("waits"), words(explanation));
}

/** The server's SVG as nodes; its looks are those of drawings.css. */
function drawn(picture) {
  const bare = picture.replace(/<style>.*?<\/style>/s, "");
  return document.importNode(new DOMParser().parseFromString(bare, "image/svg+xml").documentElement, true);
}

function words({ states, edges }) {
  const name = (number) => (number < 0 ? "start" : states.find((each) => each.number === number)?.letter ?? number);
  return edges.flatMap(({ source, op, arms, guards, age, lasting }) => arms.map((arm) => h("li", {},
    h("b", {}, `${name(source)} → ${name(arm.target)}`), source < 0 ? "" : ` ${op} `,
    h("span", { class: "muted" }, [...(age ? [age] : []), ...lasting, ...arm.conditions, ...guards.map(({ letter }) => `no ${letter} between`)].join(" · ") || "any"))));
}
