"""Queries that together use every clause and operator."""

from __future__ import annotations

_HEAD = "PREFIX : <http://e/>\nSELECT * FROM STREAM S1 <http://e/s>\nWHERE {\n  SEQ(A)\n  DEFINE GPM A ON S1 "


def body(pattern: str) -> str:
    """A query with this group graph pattern as its only GPM."""
    return f"{_HEAD}{{ {pattern} }}\n}}\n"


def seq(text: str) -> str:
    """A query with this SEQ and no GPM."""
    return f"SELECT * FROM STREAM S1 <http://e/s> WHERE {{ SEQ({text}) }}"


PATTERNS = {
    "triples": '?s :p ?o ; :q 1, 2.5, 1e3, -1, +2 ; a :T . ?o ?p "x", \'y\', """z\n"q" """, "w"@en, "1"^^:dt, true .',
    "trailing semicolon": "?s :p ?o ; . ?s :q ?r ;",
    "blank nodes": "_:x :p [] . [] :q _:x . [ :a ?b ; :c [ :d ?e ] ] :f ?g . [ :h 1 ] .",
    "collections": "?s :list (1 ?x (:a [ :b 2 ]) ()) . (1 2) :p ?o .",
    "paths": "?s :a/:b ?o . ?s (:a|^:b)+ ?o . ?s !(:a|^:b|a|^a) ?o . ?s !:a ?o . ?s ^(:a/:b)* ?o . ?s (a|:c)? ?o .",
    "path marks beside variables": "?s :p? ?o . ?s :p* ?o . ?s :p+ ?o",
    "filters": "?s :p ?o . FILTER(?o > 1 && ?o*2 <= 9-1 || !BOUND(?x)) FILTER REGEX(STR(?o), '^a', 'i') FILTER :f(?o)",
    "in lists": "?s :p ?o . FILTER(?o IN (1, 2+3, :x)) FILTER(?o NOT IN ())",
    "exists": "?s :p ?o . FILTER EXISTS { ?s :q ?r } FILTER NOT EXISTS { ?s :u ?r FILTER(?r = ?o) }",
    "optional": "?s :p ?o OPTIONAL { ?s :q ?r FILTER(?r > ?o) OPTIONAL { ?r :t ?u } }",
    "union": "{ ?s :p ?o } UNION { ?s :q ?o } UNION { } { ?s :r ?t }",
    "minus": "?s :p ?o MINUS { ?s :q ?o }",
    "graph": "?s :p ?o GRAPH <http://e/g> { ?s :q ?r } GRAPH ?g { ?s :t ?u }",
    "bind": "?s :p ?o BIND(?o * 2 AS ?d) BIND(IF(?d > 1, 'a', COALESCE(?u, 'b')) AS ?i)",
    "values": "?s :p ?o VALUES ?o { 1 :x UNDEF } VALUES (?s ?o) { (:a 1) (UNDEF 'b'@de) } VALUES () { () }",
    "sub-select": "{ SELECT DISTINCT ?s (COUNT(DISTINCT ?o) AS ?n) WHERE { ?s :p ?o } GROUP BY ?s HAVING(COUNT(?o) > 1)"
    " ORDER BY DESC(?n) ?s LIMIT 3 OFFSET 1 VALUES ?s { :a } } ?s :q ?r",
    "aggregates": "{ SELECT (GROUP_CONCAT(?o ; SEPARATOR=', ') AS ?c) (SUM(?o) AS ?t) (COUNT(*) AS ?k)"
    " { ?s :p ?o } GROUP BY (STR(?s) AS ?g) }",
    "casts": "?s :p ?o FILTER(<http://www.w3.org/2001/XMLSchema#integer>(?o) = 1 && :now() < :max(DISTINCT ?o))",
    "signs": "?s :p ?o FILTER(?o -1 > -?o && ?o+1 > +?o && - 1 < -(1) && ?o - -1 = 0)",
    "comparisons without spaces": "?s :p ?o . ?s :q ?r FILTER(?o<?r&&?r>?o||?o<=1)",
    "escapes": r'?s :p "a\"b\\\n\té\U0001F600" ; :q\,x ?o ; :%20y ?z',
    "comments": '?s :p ?o # a comment with } and "\n . # another\n ?s <http://e/x#y> ?z',
    "keywords in any case": "?s :p ?o optional { ?s :q ?r } Filter(bound(?r)) Bind(1 As ?x)",
    "nothing": "",
}

QUERIES = {name: body(pattern) for name, pattern in PATTERNS.items()} | {
    "prev": body("?s :p ?o FILTER(?o > PREV(?o))"),
    "all operators": seq("A, B; C : D & E | F"),
    "all quantifiers": seq("A+; B;+, C:+ : D,+; E{2}, F{2,}, G;{2,3} : H?; I!; J"),
    "nested parentheses": seq("((A; B)+, (C | (D & E)))?; (((F))+)?"),
    "select columns": "SELECT DISTINCT ?a (COUNT(A) + 1 AS ?n) (TIMEOF(A) AS ?t) (AVG(?p) AS ?m) (STARTTIME() AS ?s)"
    " WITHIN 1 MINUTE FROM STREAM S1 <http://e/s> WHERE { SEQ(A+) DEFINE GPM A ON S1 { ?a <http://e/p> ?p } }",
    "construct": "BASE <http://e/> PREFIX : <#>"
    " CONSTRUCT { ?a a :Rise ; :by (?q - ?p), 2 . [ :at (ENDTIME()) ] :of _:b}"
    " INTO STREAM <out> FROM STREAM S1 <s> WITHIN 10 EVENTS SLIDING WHERE { SEQ(A) DEFINE GPM A ON S1 { ?a :p ?p } }",
    "ask": "ASK FROM STREAM S1 <http://e/s> WITHIN PT1H30M WHERE { SEQ(A) }",
    "partition, strategy, consumption and limit": "SELECT DISTINCT max ?a partition by ?a ?b FROM STREAM S1 <http://e/s>"
    " CONSUME BY partition WITHIN 3 EVENTS WHERE { SEQ(A) DEFINE GPM A ON S1 { ?a <http://e/p> ?b } } Limit 2",
    "clauses in any order": "select all * consume by none from stream S2 <http://e/t> within 2 days from stream S1 <http://e/s>"
    " where { seq(A) define gpm A on S1 { } define gpm B on S2 { ?s ?p ?o } }",
}
