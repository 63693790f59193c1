"""Which triples of an event a graph pattern matched, where all that the match binds is known.

Only plain triple patterns at the top of the pattern are examined: of paths, OPTIONAL and UNION nothing is marked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad, QuerySolutions, Store, Triple, Variable

from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Gpm, GraphPattern, Group, TriplePattern, Values
from oxiseq.grammar.parts import changed
from oxiseq.grammar.render import render_group
from oxiseq.grammar.scope import visible_variables
from oxiseq.languages.reasons.facts import as_variable

_NAME: Final = "urn:oxiseq:triple:"
_MOST: Final = 100
"""Most ways to match one event that are examined."""


def matched_triples(gpm: Gpm, graph: Sequence[Triple], bound: Mapping[str, Term | None]) -> tuple[int, ...]:
    """The numbers, in rising order, of the triples of `graph` that the pattern matched with these values."""
    patterns = [changed(e, as_variable("blank")) for e in gpm.pattern.elements if isinstance(e, TriplePattern)]
    if not patterns or not graph:
        return ()
    store = Store()
    store.extend(
        Quad(triple.subject, triple.predicate, triple.object, NamedNode(f"{_NAME}{number}"))
        for number, triple in enumerate(graph)
    )
    names = [Variable(f"oxiseq_triple_{number}") for number in range(len(patterns))]
    where = [GraphPattern(name, Group((pattern,))) for name, pattern in zip(names, patterns, strict=True)]
    given = {Variable(v): t for v, t in bound.items() if isinstance(t, NamedNode | Literal)}
    values = [Values(tuple(given), (tuple(given.values()),))] if given else []
    chosen = " ".join(map(str, names))
    rows = store.query(f"SELECT {chosen} WHERE {render_group(Group((*values, *where)))} LIMIT {_MOST}")
    assert isinstance(rows, QuerySolutions)
    return tuple(sorted({_number(row[name]) for row in rows for name in names}))


def values_in_all(gpm: Gpm, others: Sequence[Gpm], bound: Mapping[str, Term | None]) -> dict[str, Term | None]:
    """The values that hold in every iteration of a repeated pattern: not those that it alone binds."""
    shared = {v.value for other in others for v in visible_variables(other.pattern)}
    own = {v.value for v in visible_variables(gpm.pattern)} - shared
    return {name: term for name, term in bound.items() if name not in own}


def _number(name: object) -> int:
    assert isinstance(name, NamedNode)
    return int(name.value.removeprefix(_NAME))
