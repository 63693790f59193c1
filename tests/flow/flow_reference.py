"""Flow plans evaluated on bags, by their definitions: everything anew, no weights below 0 but where Negate says so.

A row is a tuple of terms, None being unbound; a bag counts rows. The order of terms and the values of sums are asked of
Oxigraph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeAlias

from pyoxigraph import BlankNode, DefaultGraph, QuerySolutions, Store, Triple, Variable
from reference.values import ExpressionError, evaluate, holds, normal_term

from oxiseq.engine.flow import plan as p
from oxiseq.grammar.algebra import Expression, Term

Row: TypeAlias = tuple[Term | None, ...]
Bag: TypeAlias = "Counter[Row]"


@dataclass
class World:
    """What a plan is evaluated on: by content the triples of windows, the knowledge base, what is given by name."""

    windows: Sequence[Sequence[Triple]] = ()
    kb: Store = field(default_factory=Store)
    given: Mapping[str, Bag] = field(default_factory=dict)

    def triples(self, place: p.Place) -> set[Triple]:
        """Of a place."""
        if isinstance(place, p.WindowPlace):
            return set(self.windows[place.content])
        graph = DefaultGraph() if place.name is None else place.name
        return {quad.triple for quad in self.kb.quads_for_pattern(None, None, None, graph)}


def answer(plan: p.FlowPlan, world: World) -> Bag:
    """The rows of the root. Fails if a bag has fewer than none of a row."""
    bags: list[Bag] = []
    for form, width in zip(plan.forms, plan.widths, strict=True):
        bag = _bag(form, [bags[i] for i in p.inputs(form)], world, plan)
        assert all(len(row) == width for row in bag), form
        bags.append(Counter({row: n for row, n in bag.items() if n}))
    found = bags[plan.root]
    assert all(n > 0 for n in found.values())
    return found


def _bag(form: p.Form, children: list[Bag], world: World, plan: p.FlowPlan) -> Bag:
    match form:
        case p.Patterns():
            return Counter(dict.fromkeys(_conjunction(form, world), 1))
        case p.Asked(text, width):
            found = world.kb.query(text)
            assert isinstance(found, QuerySolutions)
            return Counter(tuple(s[i] for i in range(width)) for s in found)
        case p.Given(name, _):
            return Counter(world.given[name])
        case p.Constant(rows, _):
            return Counter(tuple(None if t is None else normal_term(t) for t in row) for row in rows)
        case p.Union():
            return _sum(children)
        case p.Join(left, right):
            return _join(plan.forms[left], plan.forms[right], *children)
        case p.Filter(_, conditions):
            return _only(children[0], lambda row: all(holds(c, _named(row)) for c in conditions))
        case p.Extend(_, expression):
            return _each(children[0], lambda row: (*row, _value(expression, row)))
        case p.Pick(_, columns):
            return _each(children[0], lambda row: tuple(_first(row, places) for places in columns))
        case p.Negate():
            return Counter({row: -n for row, n in children[0].items()})
        case p.Arrange() | p.Consolidate():
            return children[0]
        case p.Distinct():
            return Counter({row: 1 for row, n in children[0].items() if n > 0})
        case p.Group():
            return _group(form, children[0])
        case p.Best():
            return _best(form, children[0])
        case p.Reach():
            return _reach(children[0])


# --- rows -----------------------------------------------------------------------------------------


def _named(row: Row) -> dict[Variable, Term]:
    return {p.column(i): t for i, t in enumerate(row) if t is not None}


def _value(expression: Expression, row: Row) -> Term | None:
    try:
        return evaluate(expression, _named(row))
    except ExpressionError:
        return None


def _first(row: Row, places: Sequence[int]) -> Term | None:
    return next((row[i] for i in places if row[i] is not None), None)


def _sum(bags: Sequence[Bag]) -> Bag:
    total: Bag = Counter()
    for bag in bags:
        for row, n in bag.items():
            total[row] += n
    return total


def _each(bag: Bag, change: Any) -> Bag:
    total: Bag = Counter()
    for row, n in bag.items():
        total[change(row)] += n
    return total


def _only(bag: Bag, passes: Any) -> Bag:
    return Counter({row: n for row, n in bag.items() if passes(row)})


def _conjunction(form: p.Patterns, world: World) -> Iterator[Row]:
    """Every choice of one triple for each pattern that agrees."""
    graphs = [world.triples(place) for place in form.places]
    keys = form.keys
    assert [*keys] == [p.column(i) for i in range(len(keys))]
    for chosen in product(*graphs) if len(graphs) < 3 else _agreeing(form.patterns, graphs):
        found: dict[Variable, Term] = {}
        if all(map(lambda pattern, triple: _fits(pattern, triple, found), form.patterns, chosen)) and all(
            holds(c, found) for c in form.filters
        ):
            yield tuple(found[key] for key in keys)


def _agreeing(patterns: Sequence[Any], graphs: Sequence[set[Triple]]) -> Iterator[tuple[Triple, ...]]:
    partial: list[tuple[Triple, ...]] = [()]
    for pattern, graph in zip(patterns, graphs, strict=True):
        partial = [
            (*chosen, triple)
            for chosen in partial
            for known in [_bound(patterns, chosen)]
            for triple in graph
            if _fits(pattern, triple, dict(known))
        ]
    yield from partial


def _bound(patterns: Sequence[Any], chosen: tuple[Triple, ...]) -> dict[Variable, Term]:
    found: dict[Variable, Term] = {}
    for pattern, triple in zip(patterns, chosen, strict=False):
        _fits(pattern, triple, found)
    return found


def _fits(pattern: Any, triple: Triple, found: dict[Variable, Term]) -> bool:
    for wanted, term in zip((pattern.subject, pattern.predicate, pattern.object), triple, strict=True):
        if isinstance(wanted, Variable):
            if found.setdefault(wanted, term) != term:
                return False
        elif normal_term(wanted) != term:
            return False
    return True


def _join(left: p.Form, right: p.Form, a: Bag, b: Bag) -> Bag:
    assert isinstance(left, p.Arrange) and isinstance(right, p.Arrange)
    total: Bag = Counter()
    by_key: dict[Row, list[tuple[Row, int]]] = {}
    for other, m in b.items():
        by_key.setdefault(tuple(other[i] for i in right.key), []).append((other, m))
    for row, n in a.items():
        for other, m in by_key.get(tuple(row[i] for i in left.key), ()):
            loose = zip(left.loose, right.loose, strict=True)
            if all(row[i] is None or other[j] is None or row[i] == other[j] for i, j in loose):
                total[(*row, *other)] += n * m
    return total


# --- groups, ranks, paths -------------------------------------------------------------------------


def _group(form: p.Group, bag: Bag) -> Bag:
    groups: dict[Row, list[Row]] = {} if form.key else {(): []}
    for row, n in bag.items():
        assert n >= 0
        groups.setdefault(tuple(row[i] for i in form.key), []).extend([row] * n)
    return Counter((*key, *(_folded(s, rows) for s in form.sums)) for key, rows in groups.items())


def _folded(what: p.Sum, rows: list[Row]) -> Term | None:
    if what.place is None:
        return evaluate_text(f"SELECT ({len(rows)} AS ?v) {{}}")
    values = [row[what.place] for row in rows]
    if what.name == "COUNT":
        return evaluate_text(f"SELECT ({sum(v is not None for v in values)} AS ?v) {{}}")
    if None in values or any(isinstance(v, BlankNode) for v in values):
        return None
    separator = f'; SEPARATOR="{what.separator}"' if what.name == "GROUP_CONCAT" else ""
    ordered = in_order([v for v in values if v is not None])
    listed = " ".join(str(v) for v in ordered)
    return evaluate_text(f"SELECT ({what.name}(?x{separator}) AS ?v) {{ VALUES ?x {{ {listed} }} }}")


def evaluate_text(text: str) -> Term | None:
    """The value of ?v."""
    found = Store().query(text)
    assert isinstance(found, QuerySolutions)
    (row,) = found
    value: Term | None = row["v"]
    return value


def in_order(terms: Sequence[Term]) -> list[Term]:
    """As ORDER BY has them, equal ones by their text; blank nodes first."""
    blank = sorted((t for t in terms if isinstance(t, BlankNode)), key=str)
    others = sorted((t for t in terms if not isinstance(t, BlankNode)), key=str)
    found = Store().query(f"SELECT ?v {{ VALUES ?v {{ {' '.join(map(str, others))} }} }} ORDER BY ?v")
    assert isinstance(found, QuerySolutions)
    return [*blank, *(s["v"] for s in found)]


def _best(form: p.Best, bag: Bag) -> Bag:
    places = dict.fromkeys([*(r.place for r in form.order), *range(len(next(iter(bag), ())))])
    down = {r.place for r in form.order if r.descending}
    every = in_order(list({t for row in bag for t in row if t is not None}))
    number: dict[Term | None, int] = {None: 0, **{t: i + 1 for i, t in enumerate(every)}}

    def rank(row: Row) -> list[int]:
        return [-number[row[i]] if i in down else number[row[i]] for i in places]

    groups: dict[Row, list[Row]] = {}
    for row, n in bag.items():
        groups.setdefault(tuple(row[i] for i in form.key), []).extend([row] * n)
    total: Bag = Counter()
    for rows in groups.values():
        rows.sort(key=rank)
        first = rank(rows[0])[: len(form.order)]
        tied = [row for row in rows if rank(row)[: len(form.order)] == first]
        total.update(tied if form.ties else rows[form.start : form.stop])
    return total


def _reach(bag: Bag) -> Bag:
    found = {row for row, n in bag.items() if n > 0}
    while True:
        more = {(*a[:-1], b[-1]) for a in found for b in found if a[:-2] == b[:-2] and a[-1] == b[-2]}
        if more <= found:
            return Counter(dict.fromkeys(found, 1))
        found |= more
