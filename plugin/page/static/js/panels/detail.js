// The chosen match: what it derives from, its events' graphs with their times and the facts of the knowledge
// base; also to be saved as PROV-O.

import { queryPath, select, send } from "../api.js";
import { byId, fill, h } from "../dom.js";
import { declared, shortIri, shortTime } from "../rdf.js";
import { selectedQuery, set } from "../state.js";
import { graph } from "./graph.js";
import { instantOf } from "./instant.js";

const MOST_EVENTS = 40, MOST_FACTS = 60;
let shown = null;

export async function showDetail(match, lanes) {
  const panel = byId("detail");
  panel.hidden = !match;
  const key = match && `${selectedQuery()?.name} ${match.id}`;
  if (key === shown) return;
  shown = key;
  set({ provenance: null });
  if (!match) return;
  byId("detail-title").textContent = `Match ${match.id}`;
  const body = byId("detail-body");
  fill(byId("detail-rdf"));
  fill(body, h("p", { class: "muted" }, "…"));
  try {
    const path = `${queryPath(selectedQuery().name)}/matches/${match.id}/provenance`;
    const provenance = await (await send(path, { headers: { Accept: "application/json" } })).json();
    const facts = provenance.facts ? used(provenance.facts) : await knowledge(provenance.events, match);
    const more = provenance.events.length - MOST_EVENTS;
    if (key === shown) {
      set({ provenance });
      fill(body, provenance.events.slice(0, MOST_EVENTS).map((event) => card(event, lanes.indexOf(event.gpm))),
        more > 0 ? h("p", { class: "muted" }, `${more} more events`) : null, facts,
        instantOf(selectedQuery(), match, declared(selectedQuery().text)));
      fill(byId("detail-rdf"), saved(path, match));
    }
  } catch (problem) {
    if (key === shown) fill(body, h("p", { class: "bad" }, problem.message));
  }
}

function card({ gpm, stream, time, triples, matched }, lane) {
  return h("section", { class: "card-event" },
    h("h4", {}, h("span", { class: `tag gpm-${(lane < 0 ? 0 : lane) % 8}` }, gpm), " ", shortTime(time),
      h("span", { class: "muted", title: stream }, " ", shortIri(stream))),
    triples.length ? graph(triples, matched) : h("p", { class: "muted" }, "The stream keeps this event no longer."));
}

/** The facts that the match used: subject, predicate, object and perhaps graph. */
function used(facts) {
  return facts.length ? known("facts that it used", facts.slice(0, MOST_FACTS)) : null;
}

const known = (title, triples) => h("section", { class: "card-event facts" },
  h("h4", {}, h("span", { class: "tag" }, "KB"), ` ${title}`), graph(triples));

/** A link to the same as RDF. It is fetched here, since a link sends no token. */
function saved(path, match) {
  const name = `${selectedQuery().name}-match-${match.id}.trig`;
  const link = h("a", { href: path, download: name, title: "What the match derives from, as RDF" }, "PROV-O (TriG)");
  link.addEventListener("click", async (event) => {
    if (link.href.startsWith("blob:")) return;
    event.preventDefault();
    try {
      const response = await send(path, { headers: { Accept: "application/trig" } });
      link.href = URL.createObjectURL(new Blob([await response.text()], { type: "application/trig" }));
      link.click();
    } catch (problem) {
      link.replaceWith(h("span", { class: "bad" }, problem.message));
    }
  });
  return link;
}

/** For languages whose provenance lists no facts: facts about the IRIs of the match's row and events, from the graphs
 * that the query reads. */
async function knowledge(parts, match) {
  const text = selectedQuery()?.text ?? "";
  const graphs = graphsOf(text);
  const bound = Object.values(match.bindings).filter((term) => term.type === "uri").map((term) => term.value);
  const named = parts.flatMap(({ triples }) => triples.flatMap(([subject, , object]) => [subject, object]))
    .filter((term) => term.type === "uri").map((term) => term.value);
  const iris = [...new Set([...bound, ...named])].slice(0, 50);
  if (!graphs.length || !iris.length) return null;
  const rows = await select(`SELECT ?s ?p ?o { VALUES ?g { ${bracketed(graphs)} } VALUES ?s { ${bracketed(iris)} }
    GRAPH ?g { ?s ?p ?o } } ORDER BY ?s ?p LIMIT ${MOST_FACTS}`);
  const values = new Set(Object.values(match.bindings).map((term) => term.value));
  const subjects = Map.groupBy ? [...Map.groupBy(rows, ({ s }) => s.value).values()] : [rows];
  const close = subjects.filter((group) => group.some(({ s, o }) => values.has(o.value) || bound.includes(s.value)));
  const kept = (close.length ? close : subjects).flat();
  return kept.length ? known("what the knowledge base says", kept.map(({ s, p, o }) => [s, p, o])) : null;
}

const bracketed = (iris) => iris.map((iri) => `<${iri}>`).join(" ");

function graphsOf(text) {
  return [...new Set([...text.matchAll(/\bGRAPH\s*<([^>\s]+)>/gi)].map(([, iri]) => iri))];
}
