"""Updates and other changes of a store, drawn: a few terms, two named graphs, blank nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyoxigraph as ox
from hypothesis import strategies as st

E: Final = "http://example.org/"
PREFIX: Final = f"PREFIX : <{E}> "
G, H = ox.NamedNode(E + "g"), ox.NamedNode(E + "h")
INTEGER: Final = ox.NamedNode("http://www.w3.org/2001/XMLSchema#integer")

SUBJECTS: Final = [":a", ":b", "_:x", "[]"]
OBJECTS: Final = [":a", ":b", "1", "01", "1.0", "'x'@EN", "true", "_:x", "_:y", "(1 :a)", "<<( :a :p 1 )>>"]
VARIABLES: Final = ["?x", "?y", "?z"]
PATTERNS: Final = [
    "?x :p ?y",
    "?x ?z ?y",
    "GRAPH :g { ?x ?z ?y }",
    "GRAPH ?z { ?x :p ?y }",
    "?x :p ?y . ?y :q ?z",
    "?x :p ?y FILTER NOT EXISTS { ?x :q ?y }",
    "?x :p ?y OPTIONAL { ?y :q ?z }",
    "{ ?x :p ?y } UNION { ?x :q ?z }",
    "?x :p ?y BIND(?y + 1.50 AS ?z)",
    "?x :p|^:q ?y FILTER(?y<2||?y>:a)",
    "SELECT ?x (COUNT(*) AS ?y) { ?x ?p ?o } GROUP BY ?x",
    "VALUES (?x ?y) { (:a UNDEF) (:b 01) }",
    "FILTER(false)",
    "",
    "BIND('}' AS ?x) # }",
    "?x :p ?y . BIND(BNODE() AS ?z)",
    "BIND(UUID() AS ?x) BIND(RAND() AS ?y) BIND(:g AS ?z)",
]
GRAPHS: Final = [":g", ":h", "DEFAULT"]


def triples(subjects: list[str], predicates: list[str], objects: list[str], most: int = 3) -> st.SearchStrategy[str]:
    one = st.tuples(*map(st.sampled_from, (subjects, predicates, objects))).map(" ".join)
    return st.lists(one, max_size=most).map(" . ".join)


@st.composite
def blocks(draw: st.DrawFn, subjects: list[str], predicates: list[str], objects: list[str], graphs: list[str]) -> str:
    """Data or a template, in braces."""
    parts = [draw(triples(subjects, predicates, objects))]
    for graph in draw(st.lists(st.sampled_from(graphs), max_size=2)):
        parts.append(f"GRAPH {graph} {{ {draw(triples(subjects, predicates, objects, 2))} }}")
    return " { " + " ".join(parts) + " } "


GROUND: Final = blocks([":a", ":b"], [":p", ":q"], [":a", "1", "01", "1.0", "'x'@en", "<<( :a :p 01 )>>"], [":g", ":h"])
DATA: Final = blocks(SUBJECTS, [":p", ":q"], OBJECTS, [":g", ":h"])
DELETED: Final = blocks(
    [":a", *VARIABLES], [":p", ":q", "?z"], [":a", "1", *VARIABLES, "<<( ?x :p ?y )>>"], [":g", "?z"]
)
INSERTED: Final = blocks(
    [*SUBJECTS, *VARIABLES], [":p", ":q", "?z"], [*OBJECTS, *VARIABLES, "<<( ?x :p ?y )>>"], [":g", ":h", "?z"]
)
SILENT: Final = st.sampled_from(["", "SILENT "])


@st.composite
def modifications(draw: st.DrawFn) -> str:
    """DELETE/INSERT ... WHERE."""
    delete, insert = draw(st.sampled_from([(True, False), (False, True), (True, True)]))
    text = draw(st.sampled_from(["", "", "WITH :g ", "WITH :h "]))
    text += f"DELETE{draw(DELETED)}" if delete else ""
    text += f"INSERT{draw(INSERTED)}" if insert else ""
    text += draw(st.sampled_from(["", "", "USING :g ", "USING :g USING NAMED :h "]))
    return f"{text}WHERE {{ {draw(st.sampled_from(PATTERNS))}\n}}"


@st.composite
def graph_operations(draw: st.DrawFn) -> str:
    """Of whole graphs."""
    word = draw(st.sampled_from(["CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY"]))
    silent = draw(SILENT)
    if word == "CREATE":
        return f"CREATE {silent}GRAPH {draw(st.sampled_from(GRAPHS[:2]))}"
    if word in ("CLEAR", "DROP"):
        return f"{word} {silent}{draw(st.sampled_from(['GRAPH :g', 'GRAPH :h', 'DEFAULT', 'NAMED', 'ALL']))}"
    return f"{word} {silent}{draw(st.sampled_from(GRAPHS))} TO {draw(st.sampled_from(GRAPHS))}"


OPERATIONS: Final = st.one_of(
    DATA.map("INSERT DATA{}".format),
    DATA.map("INSERT DATA{}".format),
    GROUND.map("DELETE DATA{}".format),
    DELETED.map("DELETE WHERE{}".format),
    modifications(),
    modifications(),
    graph_operations(),
)


@st.composite
def updates(draw: st.DrawFn) -> str:
    """One to three operations. Names of blank nodes are an operation's own; pyoxigraph wants that."""
    found = draw(st.lists(OPERATIONS, min_size=1, max_size=3))
    return PREFIX + " ;\n".join(each.replace("_:", f"_:o{n}") for n, each in enumerate(found))


QUADS: Final = st.builds(
    ox.Quad,
    st.sampled_from([ox.NamedNode(E + "a"), ox.NamedNode(E + "b"), ox.BlankNode("x")]),
    st.sampled_from([ox.NamedNode(E + "p"), ox.NamedNode(E + "q")]),
    st.sampled_from(
        [
            ox.NamedNode(E + "a"),
            ox.BlankNode("y"),
            ox.Literal("01", datatype=INTEGER),
            ox.Literal(1),
            ox.Literal("x", language="EN"),
        ]
    ),
    st.sampled_from([ox.DefaultGraph(), G, H, ox.BlankNode("graph")]),
)
NAMES: Final = st.sampled_from([G, H, ox.DefaultGraph(), ox.BlankNode("graph")])


def calls(method: str, *arguments: Any, **named: Any) -> Callable[[Any], object]:
    """A call of a store's method."""
    return lambda store: getattr(store, method)(*arguments, **named)


def loads(method: str, quads: list[ox.Quad], graph: ox.NamedNode | None) -> Callable[[Any], object]:
    """A load of N-Quads."""
    return calls(method, "".join(f"{quad} .\n" for quad in quads).encode(), ox.RdfFormat.N_QUADS, to_graph=graph)


SEVERAL: Final = st.lists(QUADS, max_size=4)
CHANGES: Final = st.one_of(
    st.builds(lambda text: calls("update", text), updates()),
    st.builds(lambda text: calls("update", text), updates()),
    st.builds(lambda name, quad: calls(name, quad), st.sampled_from(["add", "remove"]), QUADS),
    st.builds(lambda name, quads: calls(name, quads), st.sampled_from(["extend", "bulk_extend"]), SEVERAL),
    st.builds(lambda name, of: calls(name, of), st.sampled_from(["clear_graph", "remove_graph", "add_graph"]), NAMES),
    st.just(calls("clear")),
    st.builds(loads, st.sampled_from(["load", "bulk_load"]), SEVERAL, st.sampled_from([None, G])),
)
