// The mapping of a stream: what rows of JSON and CSV mean. The editor shows at each change what the mapping makes of the
// rows at hand; a first mapping is suggested from their columns.

import { Problem, sendJson } from "../api.js";
import { byId, fill, h } from "../dom.js";
import { shortTime } from "../rdf.js";
import { graph } from "./graph.js";

export const ROWS = ["application/json", "application/x-ndjson", "text/csv"];
const WAIT = 350, MOST_TRIED = 500000, MOST_SUGGESTED = 250000;
let timer = null, asked = 0;

export function startMapping(rows) {
  byId("mapping-text").addEventListener("input", () => tryMapping(rows()));
  byId("mapping-suggest").addEventListener("click", () => suggest(rows()));
}

/** Show the stored mapping of a stream, or a suggestion for the rows; `type`: of the rows. */
export function openMapping(stream, rows) {
  if (stream?.mapping) byId("mapping-text").value = JSON.stringify(stream.mapping, null, 2);
  else if (!byId("mapping-text").value.trim() && rows.text.trim()) return suggest(rows);
  return tryMapping(rows);
}

/** The mapping that is written: an object or, where it is no JSON, a text (a CONSTRUCT query, a name); null: none. */
export function writtenMapping() {
  const text = byId("mapping-text").value.trim();
  if (!text) return null;
  if (!/^[{"]/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Problem(0, { title: `The mapping is no JSON: ${error.message}` });
  }
}

/** Ask what comes of it, a little after the last key. */
export function tryMapping({ text, type }) {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    const mine = ++asked;
    try {
      const mapping = writtenMapping();
      if (mapping === null || !text.trim()) return fill(byId("mapping-tried"));
      const found = await (await sendJson("POST", "/mappings/try", { mapping, rows: whole(text.slice(0, MOST_TRIED), text, type), type })).json();
      if (mine === asked) fill(byId("mapping-tried"), tried(found));
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      if (mine === asked) fill(byId("mapping-tried"), h("p", { class: "bad" }, problem.message));
    }
    return undefined;
  }, WAIT);
}

/** The beginning of a long text, up to the end of a row where rows are lines. */
const whole = (part, text, type) => (part.length === text.length || type === "application/json" ? part : part.slice(0, part.lastIndexOf("\n") + 1));

function tried({ events, rejected, reasons, missing, unread }) {
  const [first] = events;
  return [
    missing.map(({ column, near }) => h("p", { class: "bad" }, `No column ${column}${near ? `: did you mean ${near}?` : ""}`)),
    rejected ? h("p", { class: "bad" }, `${rejected} ${rejected === 1 ? "row is" : "rows are"} left out: ${reasons.slice(0, 3).map(wordsOf).join("; ")}`) : [],
    first ? h("div", { class: "card-event" }, h("h3", {}, "The first event ", h("span", { class: "muted" }, first.time ? shortTime(first.time) : "its time is given beside the row")), graph(first.triples)) : [],
    unread.length ? h("p", { class: "muted" }, `Columns that the mapping does not read: ${unread.join(", ")}`) : [],
  ];
}

/** A row that is left out, in words. */
export const wordsOf = ({ reason, line = null, column = "" }) => `${line === null ? "" : `row or line ${line}: `}${column ? `${column}: ` : ""}${reason}`;

// --- a first mapping ---------------------------------------------------------------------------------

async function suggest(rows) {
  try {
    const { text, type } = rows;
    if (!text.trim()) return fill(byId("mapping-tried"), h("p", { class: "muted" }, "A mapping is suggested for rows of JSON or CSV: put some into the text first."));
    const found = await (await sendJson("POST", "/mappings/suggest", { rows: whole(text.slice(0, MOST_SUGGESTED), text, type), type })).json();
    byId("mapping-text").value = JSON.stringify(found, null, 2);
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    return fill(byId("mapping-tried"), h("p", { class: "bad" }, problem.message));
  }
  return tryMapping(rows);
}
