"""Conditions in WINDOW blocks see what their block binds (SPARQL 1.1, section 18.2; semantics.md 4 and 7).

scope        FILTER or BIND in a WINDOW block mentions a variable that is bound outside of it: it would never hold

A FILTER sees its own group, in OPTIONAL the group around it too. The pattern of EXISTS sees everything around the
EXISTS, at any depth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pyoxigraph import Variable

from oxiseq.grammar.algebra import Bind, Filter, Group, OptionalPattern, PatternElement, WindowPattern
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.finding_tools import at_variable, error
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.rsp_algebra import RspQuery
from oxiseq.grammar.scope import inner_groups, plain_variables, visible_variables

_NOTHING: frozenset[Variable] = frozenset()


@dataclass(frozen=True, slots=True)
class _Around:
    """The surroundings of a group. `seen`: variables that its conditions see beside its own; `deep`: those that are
    seen at any depth below an EXISTS; `outside`: those bound outside of the WINDOW block, `within` it or not yet."""

    seen: frozenset[Variable] = _NOTHING
    deep: frozenset[Variable] = _NOTHING
    outside: frozenset[Variable] = _NOTHING
    within: bool = False


def check_blocks(query: RspQuery, text: str) -> Iterator[Finding]:
    """Of all WINDOW blocks of WHERE."""
    inline = query.body.values.variables if query.body.values is not None else ()
    yield from _group(query.body.where, _Around(outside=frozenset(inline)), text)


def _group(group: Group, around: _Around, text: str) -> Iterator[Finding]:
    here = around.seen | around.deep | frozenset(visible_variables(group))
    for number, element in enumerate(group.elements):
        below = replace(around, seen=_NOTHING)
        if not around.within:
            beside = Group((*group.elements[:number], *group.elements[number + 1 :]))
            below = replace(below, outside=around.outside | frozenset(visible_variables(beside)))
        match element:
            case Filter(condition) | Bind(condition):
                if around.within:
                    yield from _unseen(element, (plain_variables(condition) - here) & around.outside, text)
                below = replace(below, deep=here)
            case OptionalPattern():
                below = replace(below, seen=here)
            case WindowPattern():
                below = replace(below, within=True)
        for inner in inner_groups(element):
            yield from _group(inner, below, text)


def _unseen(element: PatternElement, variables: frozenset[Variable], text: str) -> Iterator[Finding]:
    word = "FILTER" if isinstance(element, Filter) else "BIND"
    for v in sorted(variables, key=str):
        message = f"?{v.value} is bound outside this WINDOW block, where {word} does not see it"
        hint = f"put it after the block: WINDOW ... {{ ... }} {word}(...)"
        yield error("scope", message, at_variable(v, element.span, text), hint)
