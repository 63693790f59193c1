// The matches that end at one instant, page by page. The server finds the page by its number and lists none before it, so
// that there may be 2^200 of them: numbers are BigInts here, and text on the way.

import { getJson, queryPath } from "../api.js";
import { fill, h } from "../dom.js";
import { shortTerm, shortTime } from "../rdf.js";

const PAGE = 20n, LANGUAGES = ["spaseq", "ceql"];

/** A button for them, and below it the page: of the instant at which a match of a query ends. */
export function instantOf({ name, language }, match, prefixes) {
  if (!LANGUAGES.includes(language)) return null;
  const at = endOf(match), part = h("section", { class: "instant", "aria-live": "polite" });
  fill(part, h("button", { class: "small", title: "Run the query again over the events that its streams keep, up to this instant",
    onclick: () => turn(part, { name, at, prefixes }, 0n) }, "All matches of this instant"));
  return part;
}

/** When a match ends: one that a window reports when it closes has ended before that. */
function endOf({ at, events }) {
  const times = Object.values(events).flat().map(({ time }) => time);
  return times.length ? times.reduce((a, b) => (even(a) < even(b) ? b : a)) : at;
}

const even = (time) => time.replace(/(\.\d+)?Z$/, (_, digits) => (digits ?? ".").padEnd(7, "0"));

async function turn(part, of, offset) {
  try {
    const path = `${queryPath(of.name)}/matches-at?at=${encodeURIComponent(of.at)}&offset=${offset}&limit=${PAGE}`;
    const { total, matches } = await getJson(path);
    draw(part, of, offset, BigInt(total), matches);
  } catch (problem) {
    fill(part, h("p", { class: "bad" }, problem.message));
  }
}

function draw(part, of, offset, total, matches) {
  const last = total > 0n ? ((total - 1n) / PAGE) * PAGE : 0n;
  const to = (words, target, possible) => h("button", { class: "small", disabled: !possible, onclick: () => turn(part, of, target) }, words);
  const goTo = h("input", { class: "small", inputmode: "numeric", size: "8", "aria-label": "Go to the match with this number" });
  goTo.addEventListener("change", () => {
    if (/^\d{1,1300}$/.test(goTo.value.trim())) turn(part, of, clamp(BigInt(goTo.value.trim()) - 1n, total - 1n));
  });
  const names = [...new Set(matches.flatMap(({ bindings }) => Object.keys(bindings)))];
  const upTo = offset + BigInt(matches.length);
  const words = matches.length ? `${number(offset + 1n)} to ${number(upTo)} of ${number(total)}` : `none of ${number(total)}`;
  fill(part, h("h4", {}, `Matches that end at ${shortTime(of.at)}: `, h("span", { class: "muted" }, words)),
    h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Matches of the instant" }, h("table", {},
      h("thead", {}, h("tr", {}, h("th", {}, "#"), names.map((each) => h("th", {}, each)))),
      h("tbody", {}, matches.map(({ bindings }, i) => h("tr", {}, h("td", {}, number(offset + BigInt(i) + 1n)),
        names.map((each) => h("td", {}, bindings[each] ? shortTerm(bindings[each], of.prefixes) : ""))))))),
    h("div", { class: "fields tools" }, to("First", 0n, offset > 0n), to("Back", clamp(offset - PAGE, total), offset > 0n),
      to("Next", offset + PAGE, upTo < total), to("Last", last, upTo < total), h("label", { class: "inline muted" }, "Match ", goTo)));
}

const clamp = (offset, most) => (offset < 0n ? 0n : offset > most ? (most < 0n ? 0n : most) : offset);

/** In full up to 15 digits, beyond that as a power of ten. */
function number(value) {
  const digits = value.toString();
  return digits.length <= 15 ? value.toLocaleString("en") : `${digits[0]}.${digits.slice(1, 4)}e${digits.length - 1}`;
}
