"""A beginning of a sequence with one condition left out: what its last step would find without it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pyoxigraph import Variable

from oxiseq.grammar.algebra import (
    Bounded,
    Call,
    Expression,
    Filter,
    Gpm,
    GraphPattern,
    Group,
    Not,
    Op,
    PatternElement,
    Query,
    Repeat,
    SequenceElement,
)
from oxiseq.grammar.parts import changed
from oxiseq.grammar.places import atoms, elements, negation, shortest, steps_of, without_bounds
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.render import render_clause, time_span
from oxiseq.grammar.render_sparql import SparqlWriter
from oxiseq.grammar.scope import conjuncts, expression_variables, prev_variables, split_gpm, visible_variables
from oxiseq.grammar.spaseq.texts import render_sequence
from oxiseq.languages.reasons.why import WhyCondition
from oxiseq.languages.spaseq.reasons.stages import Beginning, Items, with_items

OTHER = "_of_"
"""Between a variable and the GPM that binds its own value of it, where a join is left out."""


@dataclass(frozen=True, slots=True)
class OfStep:
    """What a condition is about: the GPMs of the last element. Of a negation that was left out: `positive` is the step
    with it in its positive form, `within` how long after the event before it counts (µs)."""

    names: tuple[str, ...]
    negated: frozenset[str] = frozenset()
    positive: Query | None = None
    within: int | None = None


def conditions(query: Query, at: Beginning) -> Iterator[WhyCondition]:
    """Each condition of the last step of a beginning, left out by itself."""
    items = at.items
    last = tuple(dict.fromkeys(_atoms(items[-1:])))
    of = OfStep(last)
    if negation(items[-1][1]) is not None:
        yield from _negations(query, items, at.gap, last)
        return
    write = SparqlWriter(dict(query.prefixes))
    here = with_items(query, items)
    if query.window is not None and at.gap:
        yield WhyCondition("window", render_clause(query.window), replace(here, window=None), of=of)
    yield from _bounds(query, items, of)
    yield from _orders(query, items, at.gap, of)
    yield from _negations(query, items, at.gap, last)
    for gpm in (next(g for g in query.gpms if g.name == name) for name in last):
        for condition in _conditions(gpm):
            loose = _with_gpm(here, _without(gpm, {id(condition)}))
            shown = tuple(sorted(v.value for v in expression_variables(condition) | prev_variables(condition)))
            text = f"{gpm.name}: FILTER({write.one_line(condition)})"
            yield WhyCondition("filter", text, loose, shown, condition, of=of)
        if any(isinstance(e, GraphPattern) for e in gpm.pattern.elements):
            bound = tuple(v.value for v in split_gpm(gpm).pattern_variables)
            yield WhyCondition("knowledge base", f"{gpm.name}: GRAPH", _without_kb(here, gpm, items), bound, of=of)
    yield from _joins(here, items, at.gap, last)


def _atoms(items: Items) -> Iterator[str]:
    for _, item in items:
        yield from (atom.name for atom in atoms(item))


def _bounds(query: Query, items: Items, of: OfStep) -> Iterator[WhyCondition]:
    """Each WITHIN, AFTER and LASTING of the step; not those of negations, which would forbid more without them."""
    op, item = items[-1]
    if negation(item) is None:
        for bound in (e for e in elements(item) if isinstance(e, Bounded) and negation(e) is None):

            def without(node: Any, bound: Bounded = bound) -> Any:
                return node.item if node == bound else node

            text = f"{bound.kind.value} {time_span(bound.size)}"
            loose = (*items[:-1], (op, changed(item, without)))
            yield WhyCondition("bound", text, with_items(query, loose), of=of)


def _orders(query: Query, items: Items, gap: int, of: OfStep) -> Iterator[WhyCondition]:
    """Everything of the step by skip till any."""
    if gap and any(op is not Op.ANY for op, _ in items[gap:]):
        loose = (*items[:gap], *((Op.ANY, item) for _, item in items[gap:]))
        op = next(op for op, _ in reversed(items[gap:]) if op is not Op.ANY)
        assert op is not None
        yield WhyCondition("contiguity", f"`{op.value}`", with_items(query, loose), of=of)
    inner = without_bounds(items[-1][1])
    if isinstance(inner, Repeat) and inner.chain is not Op.ANY and (inner.most is None or inner.most > 1):
        left, item = items[-1]
        chained = changed(item, lambda node: replace(inner, chain=Op.ANY) if node == inner else node)
        loose = (*items[:-1], (left, chained))
        yield WhyCondition("contiguity", "between its iterations", with_items(query, loose), of=of)


def _negations(query: Query, items: Items, gap: int, last: tuple[str, ...]) -> Iterator[WhyCondition]:
    for number in range(gap, len(items)):
        op, item = items[number]
        if (negated := negation(item)) is not None:
            rest = (*items[:number], *items[number + 1 :])
            if number == 0 and rest:
                rest = ((None, rest[0][1]), *rest[1:])
            group = len(steps_of(negated.item)) > 1
            text = render_sequence(negated) if group else f"{' '.join(dict.fromkeys(_atoms(((op, item),))))}!"
            seen = tuple((Op.ANY if n else None, _seen(e) if n == number else e) for n, (_, e) in enumerate(items))
            within = shortest(item) if group else None  # else the bound stands in the positive form
            of = OfStep(last, frozenset(_atoms(((op, item),))), with_items(query, seen), within)
            yield WhyCondition("negation", text, with_items(query, rest), of=of)


def _seen(item: SequenceElement) -> SequenceElement:
    """What a negated element negates, with its bounds."""
    if isinstance(item, Bounded):
        return replace(item, item=_seen(item.item))
    return item.item if isinstance(item, Not) else item


def _joins(here: Query, items: Items, gap: int, last: tuple[str, ...]) -> Iterator[WhyCondition]:
    """For each variable that the last element shares with those before: a value of its own."""
    before = {v for g in here.gpms if g.name in set(_atoms(items[:gap])) for v in split_gpm(g).variables}
    mine = dict.fromkeys(v for g in here.gpms if g.name in last for v in split_gpm(g).variables)
    for variable in mine:
        if variable in before:
            other = Variable(f"{variable.value}{OTHER}{last[0]}")

            def own(node: Any, variable: Variable = variable, other: Variable = other) -> Any:
                return other if node == variable and isinstance(node, Variable) else node

            gpms = tuple(changed(g, own) if g.name in last else g for g in here.gpms)
            pair = variable.value, other.value
            loose = replace(here, gpms=gpms)
            yield WhyCondition("join", f"the same ?{variable.value}", loose, pair, same=pair, of=OfStep(last))


# --- parts of a GPM -------------------------------------------------------------------------------


def _conditions(gpm: Gpm) -> list[Expression]:
    """The conjuncts of its FILTERs."""
    return [c for e in gpm.pattern.elements if isinstance(e, Filter) for c in conjuncts(e.condition)]


def _without(gpm: Gpm, dropped: set[int]) -> Gpm:
    """Without the conditions of these identities."""
    elements: list[PatternElement] = []
    for element in gpm.pattern.elements:
        if not isinstance(element, Filter):
            elements.append(element)
            continue
        kept = tuple(c for c in conjuncts(element.condition) if id(c) not in dropped)
        if kept:
            elements.append(Filter(kept[0] if len(kept) == 1 else Call("&&", kept)))
    return replace(gpm, pattern=Group(tuple(elements)))


def _without_kb(query: Query, gpm: Gpm, items: Items) -> Query:
    """Without the GRAPH patterns of a GPM, and without the conditions that read what only they bind, of whatever GPM
    and behind the sequence."""
    own = Group(tuple(e for e in gpm.pattern.elements if not isinstance(e, GraphPattern)))
    facts = set(visible_variables(gpm.pattern)) - set(visible_variables(own))
    names = {atom.name for _, item in items for atom in atoms(item, positive=True)} - {gpm.name}
    gone = facts - {v for g in query.gpms if g.name in names for v in visible_variables(g.pattern)}

    def loose(each: Gpm, unbound: set[Variable]) -> Gpm:
        return _without(each, {id(c) for c in _conditions(each) if _reads(c, unbound)})

    bare = replace(gpm, pattern=own)
    gpms = tuple(loose(bare, facts) if g.name == gpm.name else loose(g, gone) for g in query.gpms)
    return replace(query, gpms=gpms, filters=tuple(f for f in query.filters if not _reads(f.condition, gone)))


def _reads(condition: Expression, variables: set[Variable]) -> bool:
    return not variables.isdisjoint(expression_variables(condition) | prev_variables(condition))


def _with_gpm(query: Query, gpm: Gpm) -> Query:
    return replace(query, gpms=tuple(gpm if g.name == gpm.name else g for g in query.gpms))
