"""EP-SPARQL's patterns → a plan of delta operators (operators.md, 4.3).

In the flow: algebra → **relations** (relations.py), by the way that all of SPARQL takes (flow/sparql) → plan.
Conditions go down first to where all that they read is bound; bounds on getDURATION() go down as limits: a part of a
solution is no longer than the solution. Rows that may have to be *missing* (an optional partner, MINUS) are not limited
by what stands outside.

What a recursive rule looks for in the past is looked for when the instant is over: such patterns have a source of
their own, which is fed then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import Any

from pyoxigraph import Variable

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.epsparql.anew import Leaf, Memory, leaves, memories
from oxiseq.engine.flow.epsparql.relations import (
    NOW,
    TIMES,
    Guard,
    IntervalRelations,
    Kept,
    Low,
    SeqChoice,
    Timeless,
)
from oxiseq.engine.flow.relations import Column, Relation, Relations
from oxiseq.engine.flow.sparql.around import Around
from oxiseq.engine.flow.sparql.grounds import Scope
from oxiseq.engine.flow.sparql.groups import Groups
from oxiseq.engine.flow.sparql.leaves import OneByOne, Where
from oxiseq.engine.flow.sparql.runs import decided
from oxiseq.engine.kernels.flow.moments import INTERVAL
from oxiseq.grammar.algebra import (
    Ask,
    Construct,
    Exists,
    Expression,
    Filter,
    GraphPattern,
    Group,
    Minus,
    OptionalPattern,
    PatternElement,
    Select,
    TimedPattern,
    TimeOp,
    TriplePattern,
    Union,
)
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.parts import parts
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.render import render_group
from oxiseq.grammar.render_sparql import base_clause
from oxiseq.grammar.rsp_algebra import Consume
from oxiseq.grammar.scope import certain_variables, conjuncts, plain_variables, visible_variables


@dataclass(frozen=True, slots=True)
class Lowered:
    """A plan, and what feeds it: facts, which it takes once each. roots: the answers of each pattern, and the names of
    their columns behind the interval; timeless: by the names of their sources rows without a time; kept: what is made
    of triples that may be used up: first, by number, what is kept behind guards; anew: whether what is kept may have to
    be rebuilt.

    Then leaves: where all facts are found that it was made of; memories: what has happened besides. numbered: operators
    that keep rows of queries that share the plan, and the column of the number that says whose a row is."""

    plan: p.FlowPlan
    roots: tuple[int, ...]
    names: tuple[tuple[Variable, ...], ...]
    timeless: tuple[tuple[str, Timeless], ...]
    kept: tuple[Kept, ...] = ()
    anew: bool = False
    leaves: tuple[Leaf, ...] = ()
    memories: tuple[Memory, ...] = ()
    numbered: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class UsePlan:
    """How triples are consumed (semantics.md 5): `columns` are those of solutions, `uses` of them say which triples a
    solution is made of, `copies` what a second operand of SEQ binds by itself; the choices, innermost first, take the
    last operands if `recent`, else the first. shown: what is shown of those that are chosen."""

    columns: tuple[Column, ...]
    uses: tuple[Column, ...]
    copies: tuple[Column, ...]
    choices: tuple[SeqChoice, ...]
    recent: bool
    shown: Lowered = field(repr=False)

    @property
    def seen(self) -> tuple[int, ...]:
        """The places of the columns that are there not for the choices only."""
        return _seen(self.columns, {*self.uses, *self.copies})


@dataclass(frozen=True, slots=True)
class Answered:
    """A query's pattern: its solutions' plan. uses: None where triples are not used up."""

    lowered: Lowered
    names: tuple[Variable, ...]
    uses: UsePlan | None = None


def compile_query(query: EpQuery) -> Answered:
    """The operators of a checked query. Where triples are used up, solutions have all columns, to be chosen of and
    shown after that; else those that are shown."""
    lowered, relations, solutions = _compiled([query], False)
    if not _consumes(query):
        return Answered(lowered, lowered.names[0])
    found = solutions[0]
    unseen = {*relations.uses, *relations.copies}
    columns = tuple(found.columns[i] for i in _seen(found.columns, unseen))
    choice = IntervalRelations(False, False, False)
    given = p.Given(NOW, len(columns), tuple(range(INTERVAL)))
    chosen = choice.once(Relation(choice.sheet.add(given), columns, frozenset(), True, streamed=True))
    shown = _finished(choice, [_shown(choice, chosen, query)], [query])
    uses = UsePlan(
        found.columns,
        tuple(relations.uses),
        tuple(relations.copies),
        tuple(relations.choices),
        query.consume is Consume.RECENT,
        shown,
    )
    return Answered(lowered, shown.names[0], uses)


def compile_rules(rules: Sequence[EpQuery], recursive: bool) -> Lowered:
    """The operators of the rules of a stratum."""
    return _compiled(rules, recursive)[0]


def explained(queries: Sequence[EpQuery], recursive: bool) -> tuple[Lowered, Sequence[Sequence[str]]]:
    """The operators of patterns as far as their solutions, and what the columns of these are called."""
    _, relations, solutions = _compiled(queries, recursive)
    called = [[c.value if isinstance(c, Variable) else "" for c in each.columns] for each in solutions]
    return _finished(relations, [each.node for each in solutions], queries), called


def _compiled(queries: Sequence[EpQuery], recursive: bool) -> tuple[Lowered, IntervalRelations, Sequence[Relation]]:
    for remembering in (False, True):
        relations = IntervalRelations(any(map(_consumes, queries)), recursive, remembering)
        solutions = [_solutions(relations, query) for query in queries]
        if not (relations.anew and relations.looks_back):
            break  # else what is to be rebuilt has to know what has happened, longer than it knows facts
    roots = [r.node if _consumes(q) else _shown(relations, r, q) for r, q in zip(solutions, queries, strict=True)]
    return _finished(relations, roots, queries), relations, solutions


def _consumes(query: EpQuery) -> bool:
    return query.consume not in (None, Consume.UNRESTRICTED)


def _solutions(relations: IntervalRelations, query: EpQuery) -> Relation:
    groups = IntervalGroups(relations)
    return relations.once(groups.group(_sunk(query.where, ()), Scope(groups.default())))


def _seen(columns: Sequence[Column], unseen: set[Column]) -> tuple[int, ...]:
    return tuple(i for i, c in enumerate(columns) if not isinstance(c, Low | Guard) and c not in unseen)


def _columns(query: EpQuery) -> Iterator[tuple[Variable, Expression | None]]:
    """What is shown of solutions: columns of SELECT or of a template, with their expressions."""
    match query.form:
        case Ask():
            return
        case Select(None):
            yield from ((v, None) for v in visible_variables(query.where))
        case Select(columns) | Construct(_, _, columns):
            made = [(c.variable, c.expression) for c in columns or ()]
            if isinstance(query.form, Construct):
                terms = (t for each in query.form.template for t in (each.subject, each.predicate, each.object))
                known, computed = {*visible_variables(query.where)}, {name for name, _ in made}
                shown = (t for t in dict.fromkeys(terms) if isinstance(t, Variable) and t in known - computed)
                yield from ((t, None) for t in shown)
            yield from made


def _shown(relations: IntervalRelations, a: Relation, query: EpQuery) -> int:
    """The columns that are shown of solutions; with DISTINCT equal rows of one interval are one."""
    names: list[Column] = [*TIMES]
    for column, expression in _columns(query):
        if expression is not None:
            a = relations.extend(a, expression, column)
        names.append(column)
    places = tuple((a.place(c),) if c in a.columns else () for c in names)
    node = relations.sheet.pick(a.node, places)
    return relations.sheet.add(p.Once(node)) if isinstance(query.form, Select) and query.form.distinct else node


def _finished(relations: IntervalRelations, roots: Sequence[int], queries: Sequence[EpQuery]) -> Lowered:
    names = tuple(tuple(name for name, _ in _columns(query)) for query in queries)
    kept = (*relations.guards.kept(), *relations.kept.values())
    timeless = tuple(relations.timeless.items())
    what = Lowered(p.FlowPlan((), (), 0, ()), (), names, timeless, kept, relations.anew)
    return finished(relations.sheet, roots, what)


def finished(sheet: p.Sheet, roots: Sequence[int], what: Lowered) -> Lowered:
    """The plan of some patterns. what: all that is known of them besides."""
    found = leaves(sheet) if what.anew else []
    remembered = [place for place, form in sheet.arrangements() if form.memory]
    numbered = dict(what.numbered)
    of_facts = [*(leaf.place for leaf in found), *(each.place for each in what.kept)]
    also = (*roots[1:], *of_facts, *remembered, *numbered)
    plan = sheet.plan(roots[0], also)
    places = dict(zip(also, plan.also, strict=True)) | {roots[0]: plan.root}
    return replace(
        what,
        plan=plan,
        roots=tuple(places[root] for root in roots),
        kept=tuple(replace(each, place=places[each.place]) for each in what.kept),
        leaves=tuple(replace(each, place=places[each.place]) for each in found),
        memories=memories(plan),
        numbered=tuple((places[place], column) for place, column in numbered.items()),
    )


# --- patterns ---------------------------------------------------------------------------------------


class _IntervalLeaves(OneByOne):
    """Triple patterns on the stream."""

    def __init__(self, relations: Relations) -> None:
        super().__init__(relations)
        assert isinstance(relations, IntervalRelations)
        self._in_time = relations

    def _pattern(self, pattern: TriplePattern, place: Where) -> Relation:
        return self._in_time.triples(pattern)


class IntervalGroups(Groups):
    """Groups of patterns, some of them in time."""

    def __init__(self, relations: IntervalRelations) -> None:
        super().__init__(relations, Around(default=(0,), asks_kb=False, leaves=_IntervalLeaves), None)
        self._in_time = relations

    def element(self, element: PatternElement, scope: Scope) -> Relation:
        """An element that is joined with others and is no triple pattern."""
        match element:
            case TimedPattern(TimeOp.OPTIONALSEQ, other, main):
                return self.left_join(self.element(main, scope), other, scope, element.op, late=self._is_late(other))
            case TimedPattern(TimeOp.EQUALSOPTIONAL, main, other):
                return self.left_join(self.element(main, scope), other, scope, element.op)
            case TimedPattern(TimeOp.EQUALS, left, right):
                return self._in_time.join(self.element(left, scope), self.element(right, scope), element.op)
            case TimedPattern(_, left, right):
                return self._in_time.sequence(lambda: self._before(left, scope), lambda: self.element(right, scope))
            case GraphPattern():
                return self._known(element)
        return super().element(element, scope)

    def _before(self, left: PatternElement, scope: Scope) -> Relation:
        with self._in_time.past(self._is_late(left)):
            return self.element(left, scope)

    def _is_late(self, pattern: PatternElement) -> bool:
        return self._in_time.recursive and _looks(pattern)

    def _known(self, element: GraphPattern) -> Relation:
        """A pattern that the knowledge base answers."""
        group = Group((element,))
        names = visible_variables(group)
        shown = " ".join(f"?{v.value}" for v in names) or "(1 AS ?oxiseq_one)"
        text = f"{base_clause(group)}SELECT DISTINCT {shown} WHERE {render_group(group)}"
        return self._in_time.without_time(names, certain_variables(group), Timeless(len(names), asked=text))


def _looks(pattern: PatternElement) -> bool:
    """Whether it depends on something that may be missing."""
    optional = (TimeOp.OPTIONALSEQ, TimeOp.EQUALSOPTIONAL)
    return any(True for kind in (OptionalPattern, Minus, Exists) for _ in parts(pattern, kind, GraphPattern)) or any(
        each.op in optional for each in parts(pattern, TimedPattern)
    )


# --- conditions go down -----------------------------------------------------------------------------


def _sunk(element: Any, conditions: Sequence[Expression]) -> Any:
    """An element, and conditions that it takes, each in the first part that takes it."""
    match element:
        case Group(elements):
            own = [c for e in elements if isinstance(e, Filter) for c in conjuncts(e.condition)]
            left, found = [*conditions, *own], list[PatternElement]()
            for each in elements:
                if not isinstance(each, Filter):
                    mine = [c for c in left if _takes(each, c)]
                    left = [c for c in left if c not in mine]
                    found.append(_sunk(each, mine))
            return replace(element, elements=(*found, *map(Filter, left)))
        case Union(branches):
            return replace(element, branches=tuple(_sunk(branch, conditions) for branch in branches))
        case TimedPattern(op, left_side, right_side):
            first = [c for c in conditions if op is not TimeOp.OPTIONALSEQ and _takes(left_side, c)]
            second = [c for c in conditions if c not in first]
            return replace(element, left=_sunk(left_side, first), right=_sunk(right_side, second))
        case OptionalPattern(inner) | Minus(inner):
            return replace(element, pattern=_sunk(inner, ()))
        case _:
            return element


def _takes(element: PatternElement, condition: Expression) -> bool:
    """Whether it decides a condition."""
    match element:
        case Group() | Union():
            return bool(plain_variables(condition)) and decided(condition, certain_variables(element))
        case TimedPattern(op, left, right):
            sides = ((left, TimeOp.OPTIONALSEQ), (right, TimeOp.EQUALSOPTIONAL))
            return any(op is not missing and _takes(side, condition) for side, missing in sides)
        case _:
            return False
