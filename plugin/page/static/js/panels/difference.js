// What a draft gains and loses against the chosen query, as a table.

import { aligned, h } from "../dom.js";
import { isNumber, shortTerm, shortTime, termsIn } from "../rdf.js";

const MOST = 200;

/** The answer of POST /queries/{query}/compare, drawn. */
export function difference({ columns, gained, lost, kept }, name, prefixes) {
  const rows = [...gained.slice(0, MOST).map((row) => ["+", "gained", row]), ...lost.slice(0, MOST).map((row) => ["−", "lost", row])];
  const words = `The editor’s text gains ${number(gained)} and loses ${number(lost)} of the matches of ${name}; ${kept.toLocaleString("en")} ${kept === 1 ? "is" : "are"} the same.`;
  const hidden = gained.length + lost.length - rows.length;
  return [
    h("p", { class: "verdict" }, words),
    rows.length ? h("div", { class: "scroll tall", tabindex: "0", role: "group", "aria-label": "Matches gained and lost" },
      aligned(h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "change"), columns.map((column) => h("th", { scope: "col" }, column)))),
        h("tbody", {}, rows.sort((a, b) => compare(a[2].at, b[2].at)).map(([sign, kind, row]) =>
          h("tr", { class: kind }, h("td", {}, h("b", { title: kind, "aria-label": kind }, sign)), columns.map((column) => cell(row[column], prefixes)))))))) : [],
    hidden > 0 ? h("p", { class: "muted" }, `${hidden.toLocaleString("en")} more are not shown.`) : [],
  ];
}

/** A cell is a term as N-Triples has it, or a time. */
function cell(text, prefixes) {
  const [term] = /^(<|"|_:)/.test(text) ? termsIn(text) : [];
  return h("td", { class: isNumber(term) ? "number" : null, title: term?.value ?? text }, term ? shortTerm(term, prefixes) : shortTime(text));
}

const number = (rows) => rows.length.toLocaleString("en");
const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
