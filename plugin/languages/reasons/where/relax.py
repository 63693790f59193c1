"""A part of WHERE with one condition of its new element left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyoxigraph import BlankNode, Variable

from oxiseq.grammar.algebra import Expression, Filter, GraphPattern, Group, MatchPattern, TriplePattern
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.render_sparql import SparqlWriter
from oxiseq.grammar.scope import expression_variables, visible_variables
from oxiseq.languages.reasons.where.parts import Part
from oxiseq.languages.reasons.where.rows import Ask

OTHER = "_of_pattern"
"""After a variable for the value of its own that a pattern has where a join is left out."""
_PLACES = ("subject", "predicate", "object")


@dataclass(frozen=True, slots=True)
class Relaxation:
    """`where` is the part without one condition. `shown`: the variables that this reads; `condition`: it, if it is
    a FILTER; `same`: two variables that have one value in rows of the unchanged part; `ask`: what else to query."""

    kind: str
    text: str
    where: Group
    shown: tuple[str, ...] = ()
    condition: Expression | None = None
    same: tuple[str, str] | None = None
    ask: Ask | None = None


def relaxations(part: Part, prefixes: Mapping[str, str]) -> Iterator[Relaxation]:
    """Those of its new element."""
    writer, added = SparqlWriter(dict(prefixes)), part.added
    if isinstance(added, Filter):
        shown = tuple(sorted(v.value for v in expression_variables(added.condition)))
        text = f"FILTER({writer.expression(added.condition)})"
        yield Relaxation("filter", text, part.build(()), shown, added.condition)
        return
    if part.unordered is not None:
        yield Relaxation("order", part.text, part.unordered)
    if isinstance(added, TriplePattern):
        yield from _joins(part, added)
        yield from _constants(part, added, writer)
    if part.before and not isinstance(added, MatchPattern):
        shared = tuple(v.value for v in visible_variables(added) if v in part.before)
        kind = "knowledge base" if isinstance(part.holder, GraphPattern) else "pattern"
        yield Relaxation(kind, part.text, part.build(()), shared)


def _joins(part: Part, pattern: TriplePattern) -> Iterator[Relaxation]:
    for variable in dict.fromkeys(v for v in visible_variables(pattern) if v in part.before):
        other = Variable(f"{variable.value}{OTHER}")
        loose = _with(pattern, {place: other for place in _PLACES if getattr(pattern, place) == variable})
        pair = variable.value, other.value
        yield Relaxation("join", f"the same ?{variable.value}", part.build((loose,)), pair, same=pair)


def _constants(part: Part, pattern: TriplePattern, writer: SparqlWriter) -> Iterator[Relaxation]:
    for place in ("subject", "object"):  # any predicate at all would always give rows, and show nothing
        term = getattr(pattern, place)
        if isinstance(term, Variable | BlankNode):
            continue
        loose = _with(pattern, {place: Variable(place)})
        yield Relaxation("constant", writer.term(term), part.build((loose,)), (place,))


def _with(pattern: TriplePattern, changed: Mapping[str, Variable]) -> TriplePattern:
    """The pattern with variables in some places."""
    return TriplePattern(
        changed.get("subject", pattern.subject),
        changed.get("predicate", pattern.predicate),
        changed.get("object", pattern.object),
    )
