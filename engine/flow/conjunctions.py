"""Conjunctions of triple patterns as joins: what a plan says at once, taken apart for the run (operators.md, 3.7).

In the flow: a plan, of one query or of many → **sources of single patterns, arranged, joined** → nodes. A source and
its arrangement serve all conjunctions that have the pattern.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pyoxigraph import NamedNode, Variable

from oxiseq.engine.expressions.functions import is_pure
from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.rewriting import placed
from oxiseq.grammar.algebra import Expression, TriplePattern
from oxiseq.grammar.scope import conjuncts, expression_variables


class Apart(NamedTuple):
    """A plan whose conjunctions have one pattern each. Its `root` and `also` are those of the whole. only: which rows
    of a conjunction are needed, where not all are."""

    plan: p.FlowPlan
    only: Mapping[p.Patterns, p.Only]


def apart(plan: p.FlowPlan, only: Mapping[int, p.Only]) -> Apart:
    """Each conjunction of a plan as a join. only: by its place which of its rows are needed."""
    sheet = p.Sheet()
    places: dict[int, int] = {}
    needed: dict[p.Patterns, p.Only] = {}
    for place, form in enumerate(plan.forms):
        if isinstance(form, p.Patterns):
            places[place] = _joined(sheet, form, only.get(place, ""), needed)
        else:
            places[place] = sheet.add(p.renamed(form, places))
    whole = sheet.plan(places[plan.root], tuple(places[place] for place in plan.also))
    return Apart(whole, needed)


def _joined(sheet: p.Sheet, form: p.Patterns, only: p.Only, needed: dict[p.Patterns, p.Only]) -> int:
    """The place of a conjunction's rows. Enters what its sources are needed for."""
    filters = dict.fromkeys(each for whole in form.filters for each in conjuncts(whole))
    late, sources, columns = dict(filters), list[p.Patterns](), list[tuple[int, ...]]()
    for pattern, place in dict.fromkeys(zip(form.patterns, form.places, strict=True)):
        keys = p.Patterns((pattern,), (), (place,)).keys
        names = {name: p.column(i) for i, name in enumerate(keys)}
        mine = [f for f in filters if is_pure(f) and len(_reads(f)) == 1 and _reads(f) <= {*keys}]
        late = {f: None for f in late if f not in mine}
        sources.append(p.Patterns((_named(pattern, names),), tuple(placed(f, names) for f in mine), (place,)))
        columns.append(tuple(map(form.keys.index, keys)))
    for source in sources:
        if needed.setdefault(source, only) != only:
            needed[source] = ""
    places = tuple(map(sheet.add, sources))
    several = tuple(f for f in late if is_pure(f) and len(_reads(f)) > 1)
    joined = places[0] if len(places) == 1 else sheet.add(p.JoinAll(places, tuple(columns), only, several))
    return sheet.filtered(joined, tuple(late)) if late else joined


def _named(pattern: TriplePattern, names: Mapping[Variable, Variable]) -> TriplePattern:
    s, o, predicate = (
        names[term] if isinstance(term, Variable) else term
        for term in (pattern.subject, pattern.object, pattern.predicate)
    )
    assert isinstance(predicate, NamedNode | Variable)
    return TriplePattern(s, predicate, o)


def _reads(expression: Expression) -> frozenset[Variable]:
    return frozenset(expression_variables(expression))
