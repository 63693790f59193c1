"""A query of each form, of every language, over one stream of events of `?x :p ?a`."""

from __future__ import annotations

E = "http://e/"
S = E + "S"
SPASEQ = f"""PREFIX : <{E}> {{}} FROM STREAM S <{S}> WHERE {{{{ SEQ(A; B)
    DEFINE GPM A ON S {{{{ ?x :p ?a OPTIONAL {{{{ ?x :q ?o }}}} }}}} DEFINE GPM B ON S {{{{ ?x :p ?b }}}} }}}}"""
EP = f"PREFIX : <{E}> {{}} FROM STREAM <{S}> {{{{ {{{{ ?x :p ?a }}}} SEQ {{{{ ?x :p ?b }}}} }}}}"
RSP = (
    f"PREFIX : <{E}> {{}} SELECT ?x ?a FROM NAMED WINDOW :w ON <{S}> [RANGE PT2S STEP PT1S] "
    "WHERE {{ WINDOW :w {{ ?x :p ?a }} }}"
)
RSEP = f"""PREFIX : <{E}> SELECT * FROM NAMED <{S}> WIN [RANGE PT9S SLIDE PT1S] AS :w
    EVENT ON :w {{ ?x :p ?a }} AS E1 EVENT ON :w {{ ?x :p ?b }} AS E2 WHERE {{ MATCH {{ E1 SEQ E2 }} }}"""
QUERIES: dict[str, tuple[str, str]] = {
    "SPAseq": ("spaseq", SPASEQ.format("SELECT ?x ?a ?b ?o")),
    "SPAseq, groups": ("spaseq", SPASEQ.format("SELECT ?x (COUNT(*) AS ?n)") + " GROUP BY ?x"),
    "SPAseq, CONSTRUCT": ("spaseq", SPASEQ.format("CONSTRUCT { ?x :then ?b }")),
    "SPAseq, ASK": ("spaseq", SPASEQ.format("ASK")),
    "CEQL": ("ceql", f"VOCAB <{E}> SELECT * FROM S WHERE T AS x; T AS y"),
    "EP-SPARQL": ("epsparql", EP.format("SELECT ?a ?b")),
    "EP-SPARQL, CONSTRUCT": ("epsparql", EP.format("CONSTRUCT { ?x :then ?b }")),
    "RSP-QL": ("rspql", RSP.format("")),
    "RSP-QL, DSTREAM": ("rspql", RSP.format("REGISTER DSTREAM :out AS")),
    "RSEP-QL": ("rsepql", RSEP),
}
"""By name: the language, and the text."""
