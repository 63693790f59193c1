// Beginnings of queries, per language: one per operator that people ask for.

const STREAM = "http://example.org/stream";
const spaseq = (sequence, gpms, select = "?x", until = "") => `PREFIX : <http://example.org/>
SELECT ${select}
WITHIN 1 HOUR SLIDING
FROM STREAM S <${STREAM}>
WHERE {
  SEQ(${sequence})${until && ` UNTIL ${until}`}
${gpms.map((gpm) => `  DEFINE GPM ${gpm}`).join("\n")}
}`;
const low = "A ON S { ?x :value ?low }", high = "B ON S { ?x :value ?high FILTER(?high > ?low) }";

export const TEMPLATES = {
  sparql: {
    "Everything of one thing": "SELECT ?property ?value { <http://example.org/thing> ?property ?value }",
    "Count by type": "SELECT ?type (COUNT(*) AS ?things) { ?thing a ?type } GROUP BY ?type ORDER BY DESC(?things)",
    "Events of a stream": `PREFIX prov: <http://www.w3.org/ns/prov#>
SELECT ?time ?s ?p ?o {
  SERVICE <${STREAM}> { GRAPH ?event { ?s ?p ?o } ?event prov:generatedAtTime ?time }
} ORDER BY DESC(?time) LIMIT 100`,
  },
  spaseq: {
    "A; B – the next B that joins": spaseq("A; B", [low, high], "?x ?low ?high"),
    "A : B – any later B": spaseq("A : B", [low, high], "?x ?low ?high"),
    "A, B – at the very next instant": spaseq("A, B", [low, high], "?x ?low ?high"),
    "B+ – a run that keeps rising": spaseq("A; B+", [low, "B ON S { ?x :value ?v FILTER(?v > PREV(?v)) }"], "?x ?low (COUNT(B) AS ?steps)"),
    "N! WITHIN – nothing came in time": spaseq("A; N! WITHIN 10 MINUTES", ["A ON S { ?x :alarm ?what }", "N ON S { ?x :acknowledged ?by }"], "?x ?what"),
    "UNTIL – unless something came between": spaseq("A; B", ["A ON S { ?x :ordered ?what }", "B ON S { ?x :sent ?how }", "U ON S { ?x :cancelled ?why }"], "?x ?what ?how", "U"),
    "B WITHIN – a bound on a gap": spaseq("A; B WITHIN 5 MINUTES", [low, high], "?x ?low ?high"),
    "A | B – either": spaseq("A | B", ["A ON S { ?x :opened ?door }", "B ON S { ?x :closed ?door }"], "?x ?door"),
    "SUPPRESS – one of each thing and hour": spaseq("A", ["A ON S { ?x :value ?v FILTER(?v > 90) }"], "?x ?v (SUPPRESSED() AS ?dropped)").replace("WITHIN 1 HOUR SLIDING", "SUPPRESS 1 HOUR BY ?x"),
    "COUNT over matches": `${spaseq("A; B", [low, high], "?x (COUNT(*) AS ?n)")}\nGROUP BY ?x HAVING (COUNT(*) > 10)`,
    "GRAPH – with the knowledge base": spaseq("A; B", ["A ON S { ?x :value ?low GRAPH <http://example.org/kb> { ?x :label ?name } }", high], "?name ?low ?high"),
  },
  ceql: {
    "A; B – in any gap": "VOCAB <http://example.org/>\nSELECT * FROM S\nWHERE SELL AS a; BUY AS b\nFILTER a[price > 100]\nWITHIN 1 MINUTES",
    "(A OR B)+ – repeated": "VOCAB <http://example.org/>\nSELECT * FROM S\nWHERE SELL AS a; (BUY OR SELL)+ AS rest\nFILTER rest[volume >= 1000]\nWITHIN 30 SECONDS",
  },
  rspql: {
    "Mean of the last ten minutes": `PREFIX : <http://example.org/>
REGISTER RSTREAM <urn:means> AS
SELECT ?x (AVG(?v) AS ?mean)
FROM NAMED WINDOW :w ON <${STREAM}> [RANGE PT10M STEP PT1M]
WHERE { WINDOW :w { ?x :value ?v } }
GROUP BY ?x`,
  },
  epsparql: {
    "A SEQ B": "PREFIX : <http://example.org/>\nSELECT ?x ?low ?high WHERE {\n  { ?x :value ?low } SEQ { ?x :peak ?high }\n  FILTER(getDURATION() < \"PT10M\"^^<http://www.w3.org/2001/XMLSchema#duration>)\n}",
  },
};
