"""The GPMs of one stream, compiled.

In the flow: GpmRequest → **StreamPlan** → matcher. A GPM whose pattern is a basic graph pattern goes to the match
kernel; an empty pattern needs nothing; other patterns are operators over basic ones (operator_plan.py). A plan is
immutable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyoxigraph import BlankNode, Variable

from oxiseq.engine.expressions.program import compile_program
from oxiseq.engine.extras import needed
from oxiseq.engine.matching.bgp import basic_patterns, canonical
from oxiseq.engine.matching.conditions import Condition, condition
from oxiseq.engine.matching.tables import NativeFilter, NativeGpm
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Expression, TriplePattern
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import GpmParts

if TYPE_CHECKING:
    from oxiseq.engine.patterns import operator_plan
else:
    operator_plan = needed("oxiseq.engine.patterns.operator_plan")


@dataclass(frozen=True, slots=True)
class GpmRequest:
    """A GPM to be matched; `keep` are the variables of its pattern whose values are wanted, in this order."""

    name: str
    parts: GpmParts
    keep: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class KernelGpm:
    """A GPM for the kernel: what its rows hold, and how they become occurrences."""

    request: int
    columns: tuple[Variable, ...]
    """Variables of the kernel's rows: those kept, then those that the filters or `distinct` need."""
    conditions: tuple[Condition, ...]
    memo: tuple[int, ...]
    """Per condition its memo table, −1 for none."""
    distinct: bool
    """The pattern has blank nodes: equal rows of an event are one mapping."""


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """How the requests of one stream are answered; each is in exactly one of the three groups."""

    requests: tuple[GpmRequest, ...]
    kernel: tuple[KernelGpm, ...]
    """By the kernel's numbers. After the requests come those of the operators' basic patterns."""
    everywhere: tuple[tuple[int, tuple[Condition, ...]], ...]
    """Requests with an empty pattern: one empty mapping on every event, if the conditions hold."""
    operators: tuple[operator_plan.OperatorGpm, ...]
    memo: tuple[Condition, ...]
    """Conditions that have a memo table, in the order of the tables."""
    native: tuple[NativeGpm, ...]
    """What the kernel's tables are made of (matching/tables.py), beside `kernel`."""
    leaves: tuple[tuple[str, int], ...] = ()
    """What the kernel matches beside whole requests, numbered behind them: of which GPM, in how many columns."""

    @property
    def slots(self) -> int:
        """How many triple patterns the kernel looks for; equal ones of several GPMs are one."""
        return len({step.slot for gpm in self.native for step in gpm.instance.patterns})

    def in_kernel(self, request: int) -> tuple[KernelGpm, NativeGpm] | None:
        """What the kernel matches for a request; None: it is answered otherwise."""
        pairs = zip(self.kernel, self.native, strict=True)
        return next((pair for pair in pairs if pair[0].request == request), None)

    @property
    def all_native(self) -> bool:
        """Whether the kernel answers every request."""
        return not (self.operators or self.everywhere)

    @property
    def asks_every_event(self) -> bool:
        """Whether an event can have rows though the kernel finds nothing in it."""
        return bool(self.everywhere) or any(gpm.every is not None for gpm in self.operators)

    @property
    def widths(self) -> tuple[int, ...]:
        """How many columns the rows of each request have, then those of each leaf."""
        return (*(len(request.keep) for request in self.requests), *(width for _, width in self.leaves))

    def name(self, number: int) -> str:
        """The GPM of a request or a leaf."""
        own = len(self.requests)
        return self.requests[number].name if number < own else self.leaves[number - own][0]


def compile_stream(requests: Sequence[GpmRequest], terms: TermDictionary) -> StreamPlan:
    """Compile the GPMs of one stream. Constants enter the dictionary."""
    compiler = _Compiler(terms, len(requests))
    for number, request in enumerate(requests):
        compiler.add(number, request)
    return StreamPlan(
        tuple(requests),
        tuple(compiler.kernel),
        tuple(compiler.everywhere),
        tuple(compiler.operators),
        tuple(compiler.memo),
        tuple(compiler.native),
        tuple(compiler.leaves),
    )


def combine(plans: Sequence[StreamPlan]) -> tuple[StreamPlan, tuple[tuple[int, int], ...]]:
    """One plan for the kernel's GPMs of several, and for each of its leaves the (plan, request) it stands for.

    BGPs that are equal become one instance, also those of different plans.
    """
    memo: dict[Condition, int] = {}
    leaves: list[tuple[str, int]] = []
    kernel: list[KernelGpm] = []
    native: list[NativeGpm] = []
    owners: list[tuple[int, int]] = []
    for number, plan in enumerate(plans):
        for gpm, compiled in zip(plan.kernel, plan.native, strict=True):
            tables = tuple(
                -1 if table < 0 else memo.setdefault(condition, len(memo))
                for condition, table in zip(gpm.conditions, gpm.memo, strict=True)
            )
            filters = tuple(
                each if table < 0 else each.with_memo(table)
                for each, table in zip(compiled.filters, tables, strict=True)
            )
            kernel.append(replace(gpm, request=len(leaves), memo=tables))
            native.append(replace(compiled, filters=filters))
            owners.append((number, gpm.request))
            leaves.append((plan.name(gpm.request), plan.widths[gpm.request]))
    whole = StreamPlan((), tuple(kernel), (), (), tuple(memo), tuple(native), tuple(leaves))
    return whole, tuple(owners)


class _Compiler:
    def __init__(self, terms: TermDictionary, requests: int) -> None:
        self.terms = terms
        self.requests = requests
        self.native: list[NativeGpm] = []
        self.kernel: list[KernelGpm] = []
        self.everywhere: list[tuple[int, tuple[Condition, ...]]] = []
        self.operators: list[operator_plan.OperatorGpm] = []
        self.leaves: list[tuple[str, int]] = []
        self.memo: dict[Condition, int] = {}

    def add(self, number: int, request: GpmRequest) -> None:
        parts = request.parts
        patterns = None if parts.in_place else basic_patterns(parts.pattern)
        if patterns is None:
            self.add_operators(number, request)
        elif not patterns:
            self.everywhere.append((number, tuple(condition(e) for e in parts.filters)))
        else:
            self.add_native(number, patterns, parts.filters, request.keep)

    def add_operators(self, number: int, request: GpmRequest) -> None:
        compiled = operator_plan.compile_operators(number, request.name, request.parts, request.keep)
        first = self.requests + len(self.leaves)
        for i, leaf in enumerate(compiled.leaves):
            self.add_native(first + i, leaf.patterns, leaf.filters, leaf.variables)
            self.leaves.append((request.name, leaf.width))
        self.operators.append(replace(compiled, first_leaf=first))

    def add_native(
        self,
        number: int,
        patterns: tuple[TriplePattern, ...],
        filters: tuple[Expression, ...],
        keep: tuple[Variable, ...],
    ) -> None:
        instance, numbers = canonical(patterns, self.terms)
        conditions = tuple(condition(e) for e in filters)
        distinct = any(isinstance(key, BlankNode) for key in numbers)
        named = {key: n for key, n in numbers.items() if isinstance(key, Variable)}
        wanted = [*keep, *(v for c in conditions for v in c.variables), *(named if distinct else ())]
        columns = tuple(dict.fromkeys(wanted))
        memo = tuple(self.memo_table(c) for c in conditions)
        self.kernel.append(KernelGpm(number, columns, conditions, memo, distinct))
        self.native.append(
            NativeGpm(
                instance,
                tuple(self.native_filter(c, named, table) for c, table in zip(conditions, memo, strict=True)),
                tuple(named[v] for v in columns),
            )
        )

    def memo_table(self, condition: Condition) -> int:
        return self.memo.setdefault(condition, len(self.memo)) if condition.wants_memo else -1

    def native_filter(self, condition: Condition, named: dict[Variable, int], table: int) -> NativeFilter:
        variables = frozenset(named[v] for v in condition.variables)
        if table >= 0:
            (slot,) = variables
            program = compile_program(condition.expression, named, self.terms, lambda e: (table, slot))
        else:
            program = compile_program(condition.expression, named, self.terms)
        code = tuple(int(x) for x in program.code)
        return NativeFilter(code, variables, late=table >= 0 or program.foreign)
