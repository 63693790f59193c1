"""What EP-SPARQL and RSEP-QL both say: one triple after another (RSEP-QL's Table 1; semantics.md 4 and 5).

| EP-SPARQL    | RSEP-QL                                                                     |
|--------------|-----------------------------------------------------------------------------|
| unrestricted | landmark window, SEQ, CONSUME UNRESTRICTED, ISTREAM ON CONTENT CHANGE       |
| chronological| landmark window, SEQ^c, CONSUME CHRONOLOGICAL, ISTREAM ON CONTENT CHANGE    |
| recent       | landmark window, SEQ^r, CONSUME RECENT, ISTREAM ON CONTENT CHANGE           |

An operand of SEQ is one triple pattern with conditions on it: the triples of a larger one may come at different times
in EP-SPARQL, and come in one graph in RSEP-QL.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pyoxigraph import BlankNode

from oxiseq.grammar.algebra import (
    Choice,
    Exists,
    Expression,
    Filter,
    Group,
    MatchFunction,
    PatternElement,
    Span,
    TriplePattern,
)
from oxiseq.grammar.rsp_algebra import Consume
from oxiseq.grammar.scope import subexpressions
from oxiseq.grammar.translating.translation import refused

CHOICES: Final = {
    Consume.UNRESTRICTED: Choice.UNRESTRICTED,
    Consume.CHRONOLOGICAL: Choice.CHRONOLOGICAL,
    Consume.RECENT: Choice.RECENT,
}
POINTS: Final = "means the same where no event has a start (prov:startedAtTime)"
SINGLE: Final = "means the same where each event is one triple without a start (prov:startedAtTime)"


OXIGRAPH: Final = "RSEP-QL's FILTER beside MATCH is Oxigraph's, which compares some terms that EP-SPARQL refuses to"


def provisos(policy: Consume, filters: Sequence[Filter]) -> tuple[str, ...]:
    """On which events the two languages agree; whose arithmetic conditions beside the sequence follow."""
    return (POINTS if policy is Consume.UNRESTRICTED else SINGLE, *([OXIGRAPH] if filters else []))


def one_triple(pattern: Group, text: str) -> Group:
    """`pattern`, if it is one triple pattern with conditions on it. Raises QueryError."""
    triples = [e for e in pattern.elements if isinstance(e, TriplePattern)]
    others = [e for e in pattern.elements if not isinstance(e, TriplePattern | Filter)]
    if others or len(triples) != 1:
        place = (others or triples[1:] or [pattern])[0].span
        hint = "EP-SPARQL's triples may come at different times, RSEP-QL's in one graph: write one triple pattern"
        raise refused("only single triples mean the same in both languages", place, text, hint)
    for term in (triples[0].subject, triples[0].object):
        if isinstance(term, BlankNode):
            hint = "use a variable: RSEP-QL does not distinguish two of them, EP-SPARQL does"
            raise refused("a blank node counts differently in the other language", triples[0].span, text, hint)
    for element in pattern.elements:
        if isinstance(element, Filter):
            timeless(element.condition, text)
    return pattern


def timeless(expression: Expression, text: str) -> None:
    """Raise QueryError for what only one of the languages can ask."""
    for e in subexpressions(expression):
        if isinstance(e, MatchFunction):
            hint = "its answers have their times as .start and .end"
            raise refused(f"RSEP-QL has no {e.name}()", e.span, text, hint)
        if isinstance(e, Exists):
            hint = "EP-SPARQL reads triples that ended before, RSEP-QL the content of a window"
            raise refused("EXISTS reads other triples in the other language", e.span, text, hint)


def only_filters(elements: Iterable[PatternElement], text: str) -> tuple[Filter, ...]:
    """The conditions beside SEQ or MATCH, if there is nothing else. Raises QueryError."""
    found = []
    for element in elements:
        if not isinstance(element, Filter):
            hint = "only FILTER may be used beside it"
            raise refused("this has no counterpart beside a sequence", element.span, text, hint)
        timeless(element.condition, text)
        found.append(element)
    return tuple(found)


def refuse_conditions(filters: Iterable[Filter], policy: Consume, text: str) -> None:
    """Raise QueryError for conditions outside the operands where triples are used up."""
    for each in filters:
        if policy is not Consume.UNRESTRICTED:
            hint = "put it into the operand that it tests"
            raise refused("RSEP-QL also consumes what this condition rejects", each.span, text, hint)


def refuse_chain(sequences: int, policy: Consume, span: Span, text: str) -> None:
    """Raise QueryError for several SEQs where triples are used up."""
    if sequences > 1 and policy is not Consume.UNRESTRICTED:
        hint = "with CONSUME UNRESTRICTED sequences of any length mean the same"
        message = "with several SEQs the two languages consume different triples"
        raise refused(message, span, text, hint)
