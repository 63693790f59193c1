// The editor with its buttons: check while one types, run, register.

import { Problem, queryPath, select, send, sendJson } from "../api.js";
import { byId, fill, h } from "../dom.js";
import { makeEditor } from "../editor/editor.js";
import { refresh } from "../poll.js";
import { declared } from "../rdf.js";
import { on, set, state } from "../state.js";
import { tell } from "./notices.js";
import { choose } from "./queries.js";
import { showResult } from "./result.js";

const WAIT = 350, DRAFT = "oxiseq-draft";
const UPDATE = /^\s*(?:(?:#.*\n|PREFIX\s+\S*\s*<[^>]*>|BASE\s+<[^>]*>)\s*)*(INSERT|DELETE|LOAD|CLEAR|DROP|CREATE|ADD|MOVE|COPY|WITH)\b/i;
const FIRST_TEXT = `# What is in the store? Ctrl+Enter runs it.
SELECT ?type (COUNT(*) AS ?things) {
  { ?thing a ?type } UNION { GRAPH ?graph { ?thing a ?type } }
} GROUP BY ?type ORDER BY DESC(?things) LIMIT 50`;

let editor, checking = 0, timer = null;
const language = () => byId("language").value;

export function startWorkbench() {
  editor = makeEditor(byId("editor"), { label: "Query", language, changed, run });
  on(["languages", "live"], offer);
  byId("language").addEventListener("change", () => { check(); buttons(); });
  byId("run").addEventListener("click", run);
  byId("register").addEventListener("click", register);
  byId("name").addEventListener("keydown", (event) => event.key === "Enter" && register());
  offer();
  const kept = JSON.parse(sessionStorage.getItem(DRAFT) ?? "null");
  put(kept?.text ?? FIRST_TEXT, kept?.language ?? "sparql", kept?.name ?? "");
}

/** Another text into the editor. */
export function put(text, kind, name) {
  if (![...byId("language").options].some((option) => option.value === kind)) byId("language").append(option(kind));
  byId("language").value = kind;
  byId("name").value = name;
  editor.replace(text);
  buttons();
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
}

function changed(text) {
  sessionStorage.setItem(DRAFT, JSON.stringify({ text, language: language(), name: byId("name").value }));
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
    const value = { text: editor.text(), language: language(), ...(name ? { name } : {}) };
    const response = await sendJson(known ? "PUT" : "POST", known ? queryPath(name) : "/queries", value);
    const query = await response.json();
    await refresh();
    choose(query.name);
    tell(`${query.name} is registered: it ${query.language === "sparql" ? "tells when its answer changes" : "sees what is pushed from now on"}.`, "good");
  });
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
