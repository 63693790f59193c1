// Terms as people read them, and the N-Quads that the server sends of events.

/** Prefixes that are offered and used where a text has none of its own. */
export const PREFIXES = {
  rdf: "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
  rdfs: "http://www.w3.org/2000/01/rdf-schema#",
  xsd: "http://www.w3.org/2001/XMLSchema#",
  owl: "http://www.w3.org/2002/07/owl#",
  skos: "http://www.w3.org/2004/02/skos/core#",
  prov: "http://www.w3.org/ns/prov#",
  sosa: "http://www.w3.org/ns/sosa/",
  ssn: "http://www.w3.org/ns/ssn/",
  time: "http://www.w3.org/2006/time#",
  geo: "http://www.opengis.net/ont/geosparql#",
  foaf: "http://xmlns.com/foaf/0.1/",
  schema: "https://schema.org/",
  dcterms: "http://purl.org/dc/terms/",
  void: "http://rdfs.org/ns/void#",
};

export const XSD = PREFIXES.xsd;
const AT_TIME = `${PREFIXES.prov}generatedAtTime`;
const DAY = /^(\d{4}-\d\d-\d\d)T00:00:00(\.0+)?(Z|\+00:00)?$/;

/** The prefixes that a text declares. */
export function declared(text) {
  const found = {};
  for (const [, name, iri] of text.matchAll(/\bPREFIX\s+([\w.-]*):\s*<([^>\s]*)>/gi)) found[name] = iri;
  return found;
}

/** An IRI, shortened. */
export function shortIri(iri, prefixes = {}) {
  for (const [name, beginning] of Object.entries({ ...PREFIXES, ...prefixes })) {
    if (beginning && iri.startsWith(beginning) && /^[\w.-]+$/.test(iri.slice(beginning.length))) {
      return `${name}:${iri.slice(beginning.length)}`;
    }
  }
  return iri.replace(/^https?:\/\//, "").replace(/^.*?([^/#]+\/?[^/#]*)$/, "$1");
}

/** A term of SPARQL's JSON results. */
export function shortTerm(term, prefixes) {
  if (!term) return "";
  if (term.type === "uri") return shortIri(term.value, prefixes);
  if (term.type === "bnode") return `_:${term.value.slice(0, 8)}`;
  if (term.type === "triple") return "<<…>>";
  if (term.datatype === `${XSD}dateTime`) return shortTime(term.value);
  return term.value;
}

/** Midnights are days. */
export function shortTime(text) {
  return DAY.exec(text)?.[1] ?? text.replace("T", " ").replace(/(\.\d+?)0+(?=Z|$)/, "$1").replace(/\.0?(?=Z|$)/, "").replace(/Z$/, "");
}

/** Microseconds since 1970, as people read them. */
export function shortMicros(micros) {
  const seconds = Math.floor(micros / 1e6);
  const rest = String(micros - seconds * 1e6).padStart(6, "0");
  return shortTime(new Date(seconds * 1000).toISOString().replace(/\.\d+Z$/, `.${rest}Z`));
}

export const isNumber = (term) =>
  term?.type === "literal" && /#(integer|decimal|double|float|int|long|nonNegativeInteger)$/.test(term.datatype ?? "");

const TERM = /<([^>]*)>|_:(\S+)|"((?:[^"\\]|\\.)*)"(?:\^\^<([^>]*)>|@([\w-]+))?/g;

/** The events of N-Quads as `GET /streams/{stream}/events` has them: [{ time, triples: [[s, p, o]] }] by time. */
export function eventsOf(text) {
  const times = new Map();
  const graphs = new Map();
  for (const line of text.split("\n")) {
    const terms = termsIn(line);
    if (terms.length === 3 && terms[1].value === AT_TIME) times.set(terms[0].value, terms[2].value);
    if (terms.length === 4) graphs.set(terms[3].value, [...(graphs.get(terms[3].value) ?? []), terms.slice(0, 3)]);
  }
  return [...times].map(([graph, time]) => ({ time, triples: graphs.get(graph) ?? [] }));
}

/** The terms of an N-Triples text: one, or those of a triple or quad. */
export const termsIn = (text) => [...text.matchAll(TERM)].map(termOf);

function termOf([, iri, blank, text, datatype, language]) {
  if (iri !== undefined) return { type: "uri", value: iri };
  if (blank !== undefined) return { type: "bnode", value: blank };
  const value = text.replace(/\\(["\\nrt])/g, (_, c) => ({ n: "\n", r: "\r", t: "\t" })[c] ?? c);
  return { type: "literal", value, datatype, "xml:lang": language };
}
