"""Changes of a store, drawn: by updates of all kinds, by its methods, and behind its back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyoxigraph as ox
from hypothesis import strategies as st
from lowering_strategies import INTEGER, E

PREFIX: Final = f"PREFIX : <{E}> "
FAILURES: Final = (RuntimeError, OSError)
"""Of updates that may fail: CREATE of a graph that is there, DROP of one that is not."""
_TYPE: Final = ox.NamedNode(INTEGER)

Change: TypeAlias = Callable[[Any], object]

_SUBJECTS: Final = [":a", ":b"]
_PREDICATES: Final = [":p", ":p", ":q", ":q", ":r"]
_OBJECTS: Final = [":a", ":b", "1", "2", ":a", ":b"]
_GRAPHS: Final = ["", "", "GRAPH :g", "GRAPH :h"]
_WHERE: Final = [
    "?x :p ?y",
    "?x ?z ?y",
    "GRAPH :g { ?x ?z ?y }",
    "?x :p ?y . ?y :q ?z",
    "GRAPH ?z { ?x :q ?y }",
    "?x :q ?y FILTER NOT EXISTS { ?x :p ?y }",
    "{ ?x :p ?y } UNION { ?x :r ?y }",
    "?x :r ?y OPTIONAL { ?y :q ?z }",
]
_TEMPLATES: Final = [
    "?x :p ?y",
    "?x :q ?y",
    "?y :q ?x",
    "?x :r ?y",
    "GRAPH :g { ?x :p ?y }",
    "GRAPH :h { ?x :q ?y }",
    "?x ?z ?y",
]


@st.composite
def data(draw: st.DrawFn, subjects: list[str], least: int) -> str:
    """Triples in some graphs."""
    one = st.tuples(*map(st.sampled_from, (_GRAPHS, subjects, _PREDICATES, [*_OBJECTS, *subjects])))
    found = draw(st.lists(one, min_size=least, max_size=6))
    return " ".join(f"{g} {{ {s} {p} {o} }}" if g else f"{s} {p} {o} ." for g, s, p, o in found)


@st.composite
def modifications(draw: st.DrawFn) -> str:
    """DELETE and INSERT with WHERE."""
    some = st.lists(st.sampled_from(_TEMPLATES), min_size=1, max_size=2).map(" . ".join)
    delete, insert = (draw(some) for _ in range(2))
    head = draw(
        st.sampled_from(
            [f"DELETE {{ {delete} }}", f"INSERT {{ {insert} }}", f"DELETE {{ {delete} }} INSERT {{ {insert} }}"]
        )
    )
    return f"{head} WHERE {{ {draw(st.sampled_from(_WHERE))} }}"


_GRAPH_OPERATIONS: Final = [
    "CLEAR GRAPH :g",
    "DROP GRAPH :h",
    "CLEAR DEFAULT",
    "CREATE SILENT GRAPH :k",
    "CREATE GRAPH :g",
    "DROP SILENT GRAPH :k",
    "COPY :g TO :h",
    "ADD DEFAULT TO :g",
    "MOVE SILENT :h TO DEFAULT",
    "DROP NAMED",
    "CLEAR ALL",
]
UPDATES: Final = st.one_of(
    data([":a", ":b", "_:k"], 2).map("INSERT DATA {{ {} }}".format),
    data([":a", ":b"], 2).map("INSERT DATA {{ {} }}".format),
    data([":a", ":b"], 1).map("DELETE DATA {{ {} }}".format),
    modifications(),
    modifications(),
    st.sampled_from(_GRAPH_OPERATIONS),
)
_QUADS: Final = st.builds(
    ox.Quad,
    st.sampled_from([ox.NamedNode(f"{E}a"), ox.NamedNode(f"{E}b"), ox.BlankNode("own")]),
    st.sampled_from([ox.NamedNode(f"{E}p"), ox.NamedNode(f"{E}q")]),
    st.sampled_from([ox.NamedNode(f"{E}a"), ox.NamedNode(f"{E}b"), ox.Literal("01", datatype=_TYPE), ox.Literal(2)]),
    st.sampled_from([ox.DefaultGraph(), ox.NamedNode(f"{E}g"), ox.NamedNode(f"{E}h")]),
)
_NAMES: Final = st.sampled_from([ox.NamedNode(f"{E}g"), ox.NamedNode(f"{E}h"), ox.DefaultGraph()])


@dataclass(frozen=True)
class Call:
    """Of a store's method."""

    method: str
    arguments: tuple[Any, ...]

    def __call__(self, store: Any) -> object:
        return getattr(store, self.method)(*self.arguments)


@dataclass(frozen=True)
class Behind:
    """What the store does not tell: all is to be asked anew."""

    come: list[ox.Quad]
    gone: ox.Quad

    def __call__(self, store: Any) -> None:
        store.inner.extend(self.come)
        store.inner.remove(self.gone)
        store.touch()


def calls(method: str, *arguments: Any) -> Change:
    """A call of a store's method."""
    return Call(method, arguments)


def loads(method: str, quads: list[ox.Quad]) -> Change:
    """A load of N-Quads."""
    return Call(method, ("".join(f"{quad} .\n" for quad in quads).encode(), ox.RdfFormat.N_QUADS))


_NODES: Final = [ox.NamedNode(f"{E}{name}") for name in "abcd"]
SINGLE: Final = st.tuples(
    st.sampled_from(["add", "add", "add", "remove"]),
    st.builds(
        ox.Quad,
        st.sampled_from(_NODES),
        st.sampled_from([ox.NamedNode(f"{E}{name}") for name in "pqr"]),
        st.sampled_from(_NODES),
        st.sampled_from([ox.DefaultGraph(), ox.DefaultGraph(), ox.NamedNode(f"{E}g")]),
    ),
)
"""A method and a quad."""
_SEVERAL: Final = st.lists(_QUADS, max_size=5)
METHODS: Final = st.one_of(
    st.builds(calls, st.sampled_from(["add", "remove"]), _QUADS),
    st.builds(calls, st.sampled_from(["extend", "bulk_extend"]), _SEVERAL),
    st.builds(calls, st.sampled_from(["clear_graph", "remove_graph", "add_graph"]), _NAMES),
    st.builds(loads, st.sampled_from(["load", "bulk_load"]), _SEVERAL),
    st.builds(Behind, _SEVERAL, _QUADS),
)
CHANGES: Final = st.one_of(
    UPDATES.map(lambda text: calls("update", PREFIX + text)),
    UPDATES.map(lambda text: calls("update", PREFIX + text)),
    METHODS,
)
