// Why a query matched or did not: how far events came in each graph pattern, how far the sequence came, and what each
// condition of the step where it ended has prevented.

import { h } from "../dom.js";
import { share } from "../draw/share.js";
import { shortMicros, shortTerm, shortTime, termsIn } from "../rdf.js";
import { lanesOf } from "./matches.js";

const KINDS = { window: "the window", contiguity: "contiguity", bound: "a bound", negation: "the negation", filter: "a filter",
  "knowledge base": "the knowledge base", join: "a join", partition: "the partitions", strategy: "the strategy", consumption: "consumption", limit: "the limit",
  constant: "a constant", order: "the order in time", pattern: "a part" };
const STAGES = { spaseq: "matches of the sequence’s beginnings", ceql: "events that complete each place" };
const TIME = /\d{4}-\d\d-\d\dT[\d:.]+Z/g;
const PARTS = { constants: "", pattern: "", filter: "FILTER", kb: "", "kb filter": "FILTER" };

/** The answer of GET /queries/{query}/why, drawn. */
export function reasons(answer, prefixes) {
  const { looked, found, more, stopped, late } = answer;
  const overStore = answer.language === "sparql";
  if (!looked.events && !overStore) return h("p", { class: "verdict" }, "The query’s streams keep no events of that time.");
  const of = overStore ? "what the knowledge base holds" : `${count(looked.events, "event")}, ${shortMicros(looked.first)} to ${shortMicros(looked.last)}`;
  const words = [`${more ? "At least " : ""}${overStore ? count(found, "row") : count(found, "match", "matches")}`, ` in ${of}.`, late ? ` ${count(late, "event")} came too late.` : ""];
  return h("div", { class: "why" },
    h("p", { class: "verdict" }, h("b", {}, words[0]), words[1], words[2],
      answer.notes.map((note) => ` ${note[0].toUpperCase()}${note.slice(1)}.`),
      stopped ? [" It comes no further than before ", h("code", {}, stopped), " is complete."] : []),
    h("div", { class: "columns" },
      h("section", {}, h("h4", {}, overStore ? "Rows of each pattern" : "How far events came"), answer.gpms.map((gpm) => funnel(gpm, prefixes)),
        h("h4", {}, "Partial matches by step ", h("span", { class: "muted" }, STAGES[answer.language] ?? "rows of the parts of WHERE")), stages(answer)),
      h("section", {}, h("h4", {}, stopped ? "What stopped it" : "Near misses: without one condition"), kept(answer, prefixes))));
}

function funnel({ gpm, stream, saw, steps }, prefixes) {
  return h("div", { class: "funnel" }, h("p", {}, tag(gpm), stream ? ` saw ${count(saw, "event")} of ${stream}` : ""),
    h("ul", {}, steps.map((step, i) => line(step, saw, i ? steps[i - 1].events : saw, prefixes))));
}

function line({ kind, text, events, misses }, saw, before, prefixes) {
  const lost = before - events;
  const words = PARTS[kind] ? h("code", {}, `${PARTS[kind]}(${text})`) : text;
  return h("li", {}, share(events, saw), h("span", { class: "number" }, events.toLocaleString("en")),
    h("span", { class: "words" }, words, lost > 0 && misses.length
      ? h("details", {}, h("summary", {}, `${lost.toLocaleString("en")} stopped here`),
        h("ul", {}, misses.map(({ time, values }) => h("li", {}, h("span", { class: "moment" }, shortMicros(time)), valuesOf(values, prefixes)))))
      : []));
}

function stages({ stages: all, stopped }) {
  const most = Math.max(1, ...all.map(({ matches }) => matches));
  return h("ul", { class: "funnel" }, all.map(({ text, matches, more }) => h("li", { class: text === stopped ? "stop" : null },
    share(matches, most), h("span", { class: "number" }, `${more ? "≥ " : ""}${matches.toLocaleString("en")}`),
    h("span", { class: "words" }, h("code", {}, text)))));
}

function kept({ reasons: all, stopped }, prefixes) {
  if (!all.length) {
    return h("p", { class: "muted" }, stopped ? "No single condition left out would change that: see how far the patterns’ events came."
      : "Nothing: every partial match that has come so far is one.");
  }
  return h("ul", { class: "reasons" }, all.map(({ kind, condition, matches, more, nearest }) => h("li", {},
    h("p", {}, "Without ", KINDS[kind] ?? kind, ", ", h("code", {}, condition), ": ",
      h("b", {}, `${more ? "at least " : ""}${matches.toLocaleString("en")} more`)),
    h("ul", {}, nearest.map((near) => miss(near, prefixes))))));
}

function miss({ events, values, words }, prefixes) {
  const places = Object.entries(events).flatMap(([gpm, times]) => times.map((time) => ({ gpm, time })));
  places.sort((a, b) => a.time - b.time);
  return h("li", {}, places.map(({ gpm, time }) => h("span", { class: "moment" }, tag(gpm), " ", shortMicros(time))),
    valuesOf(values, prefixes), words ? h("span", { class: "muted" }, words.replace(TIME, shortTime)) : []);
}

function valuesOf(values, prefixes) {
  return Object.entries(values).map(([name, text]) => h("span", { class: "value" }, `?${name} = `,
    text === null ? "unbound" : shortTerm(termsIn(text)[0], prefixes) || text));
}

function tag(gpm) {
  const lane = lanesOf().indexOf(gpm);
  return h("span", { class: lane < 0 ? "tag" : `tag gpm-${lane % 8}` }, gpm);
}

const count = (number, one, many = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
