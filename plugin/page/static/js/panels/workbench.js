// The editor with its buttons: check while one types, run, register.

import { Problem, queryPath, select, send, sendJson } from "../api.js";
import { byId, fill, h } from "../dom.js";
import { makeEditor } from "../editor/editor.js";
import { TEMPLATES } from "../editor/templates.js";
import { refresh } from "../poll.js";
import { declared } from "../rdf.js";
import { on, set, state } from "../state.js";
import { tell } from "./notices.js";
import { choose } from "./queries.js";
import { showResult } from "./result.js";
import { sinkForm } from "./sink_form.js";
import { putSink } from "./sinks.js";

const WAIT = 350, DRAFTS = "oxiseq-drafts", MOST_TABS = 12;
const UPDATE = /^\s*(?:(?:#.*\n|PREFIX\s+\S*\s*<[^>]*>|BASE\s+<[^>]*>)\s*)*(INSERT|DELETE|LOAD|CLEAR|DROP|CREATE|ADD|MOVE|COPY|WITH)\b/i;
const FIRST_TEXT = `# What is in the store? Ctrl+Enter runs it.
SELECT ?type (COUNT(*) AS ?things) {
  { ?thing a ?type } UNION { GRAPH ?graph { ?thing a ?type } }
} GROUP BY ?type ORDER BY DESC(?things) LIMIT 50`;

let editor, checking = 0, timer = null, delivery = null;
const language = () => byId("language").value;

export function startWorkbench() {
  editor = makeEditor(byId("editor"), { label: "Query", language, changed, run });
  on(["languages", "live"], offer);
  on(["sinkKinds"], () => { delivery = sinkForm(byId("option-sink"), "option-sink", "nobody but readers"); });
  byId("language").addEventListener("change", () => { check(); buttons(); });
  byId("run").addEventListener("click", run);
  byId("register").addEventListener("click", register);
  byId("name").addEventListener("keydown", (event) => event.key === "Enter" && register());
  byId("name").addEventListener("input", () => keep());
  byId("template").addEventListener("change", useTemplate);
  offer();
  const kept = JSON.parse(sessionStorage.getItem(DRAFTS) ?? "null");
  if (kept?.drafts?.length) Object.assign(tabs, kept);
  showTab(tabs.here);
}

// --- drafts: one per tab, kept as long as the browser's tab ------------------------------------------

const tabs = { drafts: [{ text: FIRST_TEXT, language: "sparql", name: "" }], here: 0 };

/** What is in the editor belongs to its tab. */
function keep() {
  tabs.drafts[tabs.here] = { text: editor.text(), language: language(), name: byId("name").value };
  sessionStorage.setItem(DRAFTS, JSON.stringify(tabs));
  drawTabs();
}

function showTab(number) {
  tabs.here = Math.min(Math.max(number, 0), tabs.drafts.length - 1);
  const { text, language: kind, name } = tabs.drafts[tabs.here];
  fillEditor(text, kind, name);
}

function drawTabs() {
  const word = ({ name, language: kind }, i) => name || `${known(kind)?.title ?? "SPARQL"} ${i + 1}`;
  fill(byId("tabs"), tabs.drafts.map((draft, i) => h("span", { class: "tab", "data-here": String(i === tabs.here) },
    h("button", { "aria-pressed": String(i === tabs.here), onclick: () => i !== tabs.here && (keep(), showTab(i)) }, word(draft, i)),
    tabs.drafts.length > 1 ? h("button", { "aria-label": `Close ${word(draft, i)}`, onclick: () => closeTab(i) }, "×") : [])),
  h("span", { class: "tab" }, h("button", { "aria-label": "New draft", title: "New draft", onclick: () => newTab("", language(), "") }, "+")));
}

function newTab(text, kind, name) {
  keep();
  if (tabs.drafts.length >= MOST_TABS) tabs.drafts.shift();
  tabs.drafts.push({ text, language: kind, name });
  showTab(tabs.drafts.length - 1);
}

function closeTab(number) {
  keep();
  tabs.drafts.splice(number, 1);
  showTab(number < tabs.here ? tabs.here - 1 : tabs.here);
}

function useTemplate() {
  const text = TEMPLATES[language()]?.[byId("template").value];
  byId("template").value = "";
  if (text) newTab(text, language(), "");
}

/** Another text into the editor: in a tab of its own unless it is there already, or nothing has been written. */
export function put(text, kind, name) {
  const there = tabs.drafts.findIndex((draft, i) => i !== tabs.here && draft.text === text && draft.name === name);
  const blank = !editor.text().trim() || editor.text() === FIRST_TEXT || (name && byId("name").value === name);
  if (there >= 0) { keep(); return showTab(there); }
  return blank ? fillEditor(text, kind, name) : newTab(text, kind, name);
}

function fillEditor(text, kind, name) {
  if (![...byId("language").options].some((option) => option.value === kind)) byId("language").append(option(kind));
  byId("language").value = kind;
  byId("name").value = name;
  editor.replace(text);
  buttons();
  keep();
}

function offer() {
  const before = language() || "sparql";
  fill(byId("language"), ["sparql", ...(state.live === false ? [] : state.languages.map((each) => each.name))].map(option));
  byId("language").value = before;
  buttons();
}

const known = (name) => state.languages.find((each) => each.name === name);
const option = (name) => h("option", { value: name }, name === "sparql" ? "SPARQL" : known(name)?.title ?? name);

function buttons() {
  const sparql = language() === "sparql";
  byId("registering").hidden = sparql && state.live !== true;
  byId("run").title = sparql ? "Ctrl+Enter" : "Once, over the events that the streams keep (Ctrl+Enter)";
  byId("run").textContent = sparql ? "Run" : "Run once";
  byId("options").hidden = sparql || state.live !== true;
  const templates = Object.keys(TEMPLATES[language()] ?? {});
  byId("template").closest("label").hidden = !templates.length;
  fill(byId("template"), h("option", { value: "" }, "Templates"), templates.map((name) => h("option", { value: name }, name)));
}

function changed(text) {
  if (text !== tabs.drafts[tabs.here]?.text) keep();
  clearTimeout(timer);
  timer = setTimeout(check, WAIT);
}

/** What is in the editor: { text, language, type }. */
export const draft = () => ({ text: editor.text(), language: language(), type: mediaType(editor.text()) });

function mediaType(text) {
  if (language() !== "sparql") return known(language())?.media_type ?? `application/${language()}-query`;
  return UPDATE.test(text) ? "application/sparql-update" : "application/sparql-query";
}

async function check() {
  const text = editor.text();
  const mine = ++checking;
  if (state.live === false || !text.trim()) return show([]);
  try {
    const response = await send("/check", { method: "POST", headers: { "Content-Type": mediaType(text) }, body: text });
    const { findings } = await response.json();
    if (mine === checking) show(findings);
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
  }
  return undefined;
}

function show(findings) {
  editor.underline(findings);
  const errors = findings.filter(({ severity }) => severity === "error");
  const first = errors[0] ?? findings[0];
  const place = byId("finding");
  place.dataset.kind = errors.length ? "bad" : first ? "warn" : "";
  fill(place, first ? h("button", { class: "link", onclick: () => editor.goTo(first.line, first.column) },
    `Line ${first.line}, column ${first.column}`) : [], first ? ` ${first.message.trim()}${first.hint ? ` (${first.hint})` : ""}` : "");
}

async function run() {
  const text = editor.text();
  const type = mediaType(text);
  const began = performance.now();
  await busy("run", async () => {
    const path = type.endsWith("sparql-update") ? "/update" : "/query";
    const graph = /\b(CONSTRUCT|DESCRIBE)\b/i.test(text) && language() === "sparql";
    const accept = graph ? "text/turtle, application/sparql-results+json;q=0.9" : "application/sparql-results+json, application/json;q=0.9, text/turtle;q=0.5";
    const asked = (form) => send(path, { method: "POST", headers: { "Content-Type": type, Accept: form }, body: text });
    const response = await asked(accept);
    const body = await response.text();
    showResult({ body, type: response.headers.get("content-type") ?? "", took: performance.now() - began, prefixes: declared(text), again: asked });
  });
}

/** Register what is in the editor, under its name; one of that name is replaced when the user agrees. */
export async function register() {
  const name = byId("name").value.trim();
  const known = state.queries.some((query) => query.name === name);
  if (known && !confirm(`Replace the query ${name}?`)) return;
  await busy("register", async () => {
    tell(language() === "sparql" ? "Registering …" : "Registering … the first time kernels are compiled, which takes some seconds.");
    const sink = language() === "sparql" ? null : delivery?.value() ?? null;
    const value = { text: editor.text(), language: language(), ...(name ? { name } : {}), ...options() };
    const response = await sendJson(known ? "PUT" : "POST", known ? queryPath(name) : "/queries", value);
    const query = await response.json();
    await refresh();
    choose(query.name);
    if (sink) await deliver(query, sink);
    else tell(`${query.name} is registered: it ${query.language === "sparql" ? "emits each change of its answer" : "reads what is pushed from now on"}.`, "good");
  });
}

/** With the sink of the form. What the server refuses there leaves the query as it is. */
async function deliver(query, sink) {
  try {
    await putSink(query.name, sink, query.matches.next - 1);
    delivery.reset();
    tell(`${query.name} is registered: its matches are delivered to ${sink.id}.`, "good");
  } catch (problem) {
    throw new Problem(problem.status, { title: `${query.name} is registered, but without its sink: ${problem.message}` });
  }
}

/** What the form says beside the text. */
function options() {
  if (language() === "sparql") return {};
  const lateness = byId("option-lateness").value.trim(), budget = Number(byId("option-budget").value), beyond = byId("option-on-state-limit").value;
  return { ...(lateness ? { lateness } : {}), ...(budget ? { max_state_bytes: Math.round(budget * 1048576) } : {}), ...(beyond ? { on_state_limit: beyond } : {}) };
}

async function busy(button, work) {
  byId(button).disabled = true;
  tell("");
  try {
    await work();
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    tell(problem.message, "bad");
    point(problem);
  } finally {
    byId(button).disabled = false;
  }
}

/** Underline what a refusal says of the text. */
export function point(problem) {
  if (problem.findings) show(problem.findings);
  else if (problem.line) show([{ severity: "error", message: problem.message, line: problem.line, column: problem.column }]);
}

/** Predicates of the store, for completion. */
export async function seePredicates() {
  try {
    const rows = await select(`SELECT DISTINCT ?p { { SELECT ?p { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } } LIMIT 20000 } } LIMIT 300`);
    set({ predicates: [...new Set([...state.predicates, ...rows.map(({ p }) => p.value)])] });
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
  }
}
