// What SPARQL answered: a table that can be sorted and paged, a chart of its numbers, a map of its places; a graph as text
// or drawn; all of it to be saved.

import { aligned, byId, fill, h } from "../dom.js";
import { chart, chartable } from "../draw/chart.js";
import { map, placesIn } from "../draw/map.js";
import { network } from "../draw/network.js";
import { isNumber, shortTerm, termsIn } from "../rdf.js";

const PAGE = 100, MOST_TEXT = 200000;
const count = (number, one) => `${number.toLocaleString("en")} ${number === 1 ? one : `${one}s`}`;

/** Show a response's body; `took` in milliseconds, `prefixes` as the text declares them, `again(accept)` sends the request once more. */
export function showResult({ body, type, took, prefixes, again }) {
  byId("result-part").hidden = false;
  byId("result-time").textContent = `${Math.round(took).toLocaleString("en")} ms`;
  fill(byId("result-views"));
  if (!body) return titled("Done");
  if (!type.includes("json")) return graphResult(body, type, prefixes, again);
  const answer = JSON.parse(body);
  if (answer.boolean !== undefined) return titled(answer.boolean ? "Yes" : "No");
  if (!answer.head) return titled("Answer", h("pre", { tabindex: "0" }, JSON.stringify(answer, null, 2).slice(0, MOST_TEXT)));
  return tableResult(answer, body, prefixes);
}

function titled(title, ...content) {
  byId("result-title").textContent = title;
  fill(byId("result"), content);
}

/** Buttons of which one is pressed; `views`: name → a function that draws. */
function offer(views, saving) {
  const names = Object.keys(views);
  const buttons = names.map((name) => h("button", { class: "small", "aria-pressed": "false", onclick: () => look(name) }, name));
  const look = (name) => {
    buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.textContent === name)));
    views[name]();
  };
  fill(byId("result-views"), names.length > 1 ? buttons : [], saving);
  look(names[0]);
}

/** A button that saves a text. */
const save = (label, name, type, text) => h("button", { class: "small quiet", title: `Save as ${name}`, onclick: () => {
  const link = h("a", { href: URL.createObjectURL(new Blob([text()], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
} }, label);

// --- tables ------------------------------------------------------------------------------------------

function tableResult({ head, results }, body, prefixes) {
  const names = head.vars, rows = results.bindings;
  const shown = { rows, by: null, down: false, page: 0 };
  const draw = () => fill(byId("result"), pager(shown, draw), table(names, shown, prefixes, draw));
  const places = placesIn(names, rows);
  titled(count(rows.length, "row"));
  if (!rows.length) return fill(byId("result"), h("p", { class: "empty" }, "Nothing in the store matches. ", way("put-data", "Put data in"), ", or start one of the ", way("gallery-open", "examples"), "."));
  offer({
    Table: draw,
    ...(chartable(names, rows) ? { Chart: () => chartView(names, rows) } : {}),
    ...(places.length ? { Map: () => fill(byId("result"), map(places, prefixes)) } : {}),
  }, [save("CSV", "result.csv", "text/csv", () => csv(names, rows)), save("JSON", "result.srj", "application/sparql-results+json", () => body)]);
}

/** A link that presses a button of the page. */
const way = (button, words) => h("button", { class: "link", onclick: () => byId(button).click() }, words);

function table(names, shown, prefixes, draw) {
  const order = (name) => () => {
    Object.assign(shown, { by: name, down: shown.by === name && !shown.down, page: 0 });
    shown.rows = [...shown.rows].sort((a, b) => compared(a[name], b[name]) * (shown.down ? -1 : 1));
    draw();
  };
  const sorted = (name) => (shown.by !== name ? "none" : shown.down ? "descending" : "ascending");
  return h("div", { class: "scroll", tabindex: "0" }, aligned(h("table", {}, h("thead", {}, h("tr", {}, names.map((name) =>
    h("th", { scope: "col", "aria-sort": sorted(name) }, h("button", { class: "sort", title: `Sort by ${name}`, onclick: order(name) }, name))))),
    h("tbody", {}, shown.rows.slice(shown.page * PAGE, (shown.page + 1) * PAGE).map((row) => h("tr", {}, names.map((name) =>
      h("td", { title: row[name]?.value, class: isNumber(row[name]) ? "number" : null }, shortTerm(row[name], prefixes)))))))));
}

function pager(shown, draw) {
  const pages = Math.ceil(shown.rows.length / PAGE);
  if (pages < 2) return [];
  const turn = (page) => () => { shown.page = page; draw(); };
  const first = shown.page * PAGE + 1, last = Math.min(shown.rows.length, first + PAGE - 1);
  return h("div", { class: "fields tools inset", role: "group", "aria-label": "Pages of rows" },
    h("button", { class: "small", disabled: shown.page === 0, onclick: turn(shown.page - 1) }, "Previous"),
    h("button", { class: "small", disabled: shown.page === pages - 1, onclick: turn(shown.page + 1) }, "Next"),
    h("span", { class: "muted" }, `rows ${first.toLocaleString("en")} to ${last.toLocaleString("en")}`));
}

/** Numbers by value, others by their text; what is unbound comes first. */
function compared(a, b) {
  if (!a || !b) return (a ? 1 : 0) - (b ? 1 : 0);
  if (isNumber(a) && isNumber(b)) return Number(a.value) - Number(b.value);
  return a.value < b.value ? -1 : a.value > b.value ? 1 : 0;
}

/** As SPARQL 1.1 has CSV: plain values, quoted where needed, lines that end in CR LF. */
function csv(names, rows) {
  const cell = (term) => (term === undefined ? "" : /[",\r\n]/.test(term.value) ? `"${term.value.replaceAll('"', '""')}"` : term.type === "bnode" ? `_:${term.value}` : term.value);
  return [names.join(","), ...rows.map((row) => names.map((name) => cell(row[name])).join(","))].map((line) => `${line}\r\n`).join("");
}

function chartView(names, rows) {
  const { x, numeric } = chartable(names, rows);
  const box = h("select", { class: "small", onchange: () => draw() }, numeric.map((name) => h("option", { value: name }, name)));
  const place = h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Chart" });
  const draw = () => {
    const drawing = chart(rows, x, box.value, Math.max(320, byId("result").clientWidth - 32));
    const bars = drawing.querySelectorAll(".column").length;
    fill(place, drawing, bars && bars < rows.length ? h("p", { class: "muted" }, `the first ${bars} of ${count(rows.length, "row")}`) : []);
  };
  fill(byId("result"), h("div", { class: "inset" }, h("label", { class: "muted" }, "Values ", box), place));
  draw();
  new ResizeObserver(draw).observe(place); // a window that changes its width
}

// --- graphs ------------------------------------------------------------------------------------------

function graphResult(body, type, prefixes, again) {
  titled("Graph");
  const ending = type.includes("turtle") ? "ttl" : "nt";
  offer({
    Text: () => fill(byId("result"), h("pre", { tabindex: "0" }, body.slice(0, MOST_TEXT))),
    Drawing: async () => {
      const text = await (await again("application/n-triples")).text();
      const triples = text.split("\n").map(termsIn).filter((terms) => terms.length === 3);
      fill(byId("result"), h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Graph" },
        network(triples, prefixes, Math.max(320, byId("result").clientWidth))));
    },
  }, [save(ending === "ttl" ? "Turtle" : "N-Triples", `graph.${ending}`, type, () => body)]);
}
