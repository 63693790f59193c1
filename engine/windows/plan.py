"""Conjunctive queries compiled: views, patterns, filters (windows.md, section 3).

In the flow: triple patterns and filters → **plan** → tables → kernels. A view is a triple pattern's shape: its
constants, which of its positions must be equal, and the filters on one of its variables alone; equal shapes of all
queries are one view. Filters on several variables are checked while patterns are joined. What the stack machine
leaves undecided Python decides, so every filter that depends on its mapping alone is taken; FILTER (NOT) EXISTS and
functions such as RAND and NOW are left to the caller, who evaluates them on the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Final, TypeAlias

from pyoxigraph import BlankNode, Variable

from oxiseq.engine.expressions.program import compile_program
from oxiseq.engine.kernels.memory.pointers import I32
from oxiseq.engine.matching.conditions import Condition, condition, passes
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Aggregate, Expression, MatchFunction, Prev, TermOrVariable, TriplePattern
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import conjuncts, holds_exists, subexpressions

_Placed: TypeAlias = tuple[int, TermOrVariable, TermOrVariable, TermOrVariable]
Key = Variable | BlankNode
"""A variable, or a blank node of the pattern: a variable that has no name outside."""

SUBJECT, PREDICATE, OBJECT = range(3)
"""Positions of a triple."""
MOST_VARIABLES: Final = 62
MOST_PATTERNS: Final = 62
"""Bits of a mask."""
SUBJECT_PREDICATE, SUBJECT_OBJECT, PREDICATE_OBJECT = 1, 2, 4
"""Which positions of a view must agree (a repeated variable)."""


@dataclass(frozen=True, slots=True)
class ConjunctiveQuery:
    """Triple patterns, all of which must hold in the window's graph, and FILTER conditions on their variables."""

    patterns: tuple[TriplePattern, ...]
    filters: tuple[Expression, ...] = ()
    sources: tuple[int, ...] = ()
    """Of each pattern the number of the window whose triples it is about; empty: there is one."""

    @property
    def keys(self) -> tuple[Key, ...]:
        """Its variables and blank nodes in order of appearance."""
        return tuple(_keys(self.patterns))

    @property
    def placed(self) -> dict[_Placed, None]:
        """Source, subject, predicate and object of each pattern, each once."""
        sources = self.sources or (0,) * len(self.patterns)
        return dict.fromkeys((n, *_triple(p)) for n, p in zip(sources, self.patterns, strict=True))


@dataclass(frozen=True, slots=True)
class View:
    """A triple pattern's shape: term ids of its constants (0: any), positions that must agree, and numbers of the
    plan's conditions on subject, predicate and object."""

    constants: tuple[int, int, int]
    equal: int
    conditions: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
    source: int = 0


@dataclass(frozen=True, slots=True)
class PatternPlan:
    """A pattern of a query: its view's number, and the numbers of the variables in subject, predicate, object (−1: a
    constant)."""

    view: int
    variables: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class JointFilter:
    """A condition on several variables: code for the machine, and its variables' numbers (−1: bound by no pattern)."""

    condition: Condition
    code: tuple[int, ...]
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """One query of a plan."""

    keys: tuple[Key, ...]
    """What the columns of its rows are, in order of appearance."""
    patterns: tuple[PatternPlan, ...]
    joint: tuple[JointFilter, ...]
    never: bool
    """A condition without variables does not hold: there are no rows."""
    left: tuple[Expression, ...]
    """Conjuncts still to be evaluated on the rows: they hold EXISTS, or a function that is not pure."""

    def column(self, variable: Key) -> int:
        """A variable's column in the rows. Raises ValueError for one that no pattern has."""
        return self.keys.index(variable)


@dataclass(frozen=True, slots=True)
class WindowPlan:
    """Queries on one window with the views that they share. Immutable; its constants stay in the dictionary."""

    queries: tuple[CompiledQuery, ...]
    views: tuple[View, ...]
    conditions: tuple[Condition, ...]
    """On one variable each; the views name them by number."""
    programs: tuple[I32, ...]
    """Per condition its code, in which the variable is number 0."""
    sources: int = 1
    """How many windows the patterns are about."""


def not_native(query: ConjunctiveQuery) -> str | None:
    """Why a query cannot be answered incrementally; None if it can."""
    if not query.patterns:
        return "a pattern without triple patterns"
    if len(query.placed) > MOST_PATTERNS:
        return f"more than {MOST_PATTERNS} triple patterns"
    if len(_keys(query.patterns)) > MOST_VARIABLES:
        return f"more than {MOST_VARIABLES} variables"
    return None


def compile_windows(
    queries: Sequence[ConjunctiveQuery], terms: TermDictionary, sources: int | None = None
) -> WindowPlan:
    """Compile queries that share their windows. `sources`: how many there are, if not every one has
    patterns. Raises ValueError for one that is `not_native`."""
    compiler = _Compiler(terms)
    compiled = tuple(compiler.query(query) for query in queries)
    conditions = tuple(compiler.conditions)
    programs = tuple(_program(c, terms) for c in conditions)
    if sources is None:
        sources = 1 + max((view.source for view in compiler.views), default=0)
    return WindowPlan(compiled, tuple(compiler.views), conditions, programs, sources)


def _program(condition: Condition, terms: TermDictionary) -> I32:
    return compile_program(condition.expression, {condition.variables[0]: 0}, terms).code


def _triple(pattern: TriplePattern) -> tuple[TermOrVariable, TermOrVariable, TermOrVariable]:
    return pattern.subject, pattern.predicate, pattern.object


def _keys(patterns: Sequence[TriplePattern]) -> dict[Key, int]:
    """The variables' numbers."""
    numbers: dict[Key, int] = {}
    for pattern in patterns:
        for term in _triple(pattern):
            if isinstance(term, (Variable, BlankNode)):
                numbers.setdefault(term, len(numbers))
    return numbers


_NOT_OF_ROWS: Final = (Aggregate, Prev, MatchFunction)


@dataclass(slots=True)
class _Filters:
    """A query's conditions by what they need."""

    single: dict[Variable, list[int]] = field(default_factory=dict)
    joint: list[Condition] = field(default_factory=list)
    left: list[Expression] = field(default_factory=list)
    never: bool = False


class _Compiler:
    def __init__(self, terms: TermDictionary) -> None:
        self.terms = terms
        self.views: dict[View, int] = {}
        self.conditions: dict[Condition, int] = {}

    def query(self, query: ConjunctiveQuery) -> CompiledQuery:
        reason = not_native(query)
        if reason is not None:
            raise ValueError(reason)
        keys = _keys(query.patterns)
        filters = self.filters(query.filters, keys)
        patterns = tuple(self.pattern(placed, keys, filters.single) for placed in query.placed)
        joint = tuple(self.joint(each, keys) for each in filters.joint)
        return CompiledQuery(tuple(keys), patterns, joint, filters.never, tuple(filters.left))

    def filters(self, filters: Sequence[Expression], keys: dict[Key, int]) -> _Filters:
        found = _Filters()
        for expression in dict.fromkeys(each for whole in filters for each in conjuncts(whole)):
            if holds_exists(expression) or any(isinstance(e, _NOT_OF_ROWS) for e in subexpressions(expression)):
                found.left.append(expression)
                continue
            made = condition(expression)
            if not made.pure:
                found.left.append(expression)
            elif not made.variables:
                found.never |= not bool(passes(made, (), self.terms)[0])
            elif len(made.variables) == 1 and made.variables[0] in keys:
                number = self.conditions.setdefault(made, len(self.conditions))
                found.single.setdefault(made.variables[0], []).append(number)
            else:
                found.joint.append(made)
        return found

    def pattern(
        self,
        placed: _Placed,
        keys: dict[Key, int],
        single: dict[Variable, list[int]],
    ) -> PatternPlan:
        source, *triple = placed
        s, p, o = (0 if isinstance(t, (Variable, BlankNode)) else self.terms.constant(t) for t in triple)
        vs, vp, vo = (keys[t] if isinstance(t, (Variable, BlankNode)) else -1 for t in triple)
        equal = (
            (SUBJECT_PREDICATE if vs == vp >= 0 else 0)
            | (SUBJECT_OBJECT if vs == vo >= 0 else 0)
            | (PREDICATE_OBJECT if vp == vo >= 0 else 0)
        )
        cs, cp, co = (tuple(single.get(t, ())) if isinstance(t, Variable) else () for t in triple)
        view = View((s, p, o), equal, (cs, cp, co), source)
        return PatternPlan(self.views.setdefault(view, len(self.views)), (vs, vp, vo))

    def joint(self, condition: Condition, keys: dict[Key, int]) -> JointFilter:
        named = {key: number for key, number in keys.items() if isinstance(key, Variable)}
        code = compile_program(condition.expression, named, self.terms).code
        return JointFilter(condition, tuple(code.tolist()), tuple(named.get(v, -1) for v in condition.variables))
