"""Which queries differ in the threshold of their first event, or in the length of their windows, alone.

In the flow: plans of queries → **what they have in common** → ladders (automaton/ladders.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, Variable

from oxiseq.engine.matches.plan import NO_CLAUSES
from oxiseq.engine.matching.conditions import ConditionFilter, condition
from oxiseq.engine.sequence.positions import START, Letter
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Call, Expression
from oxiseq.grammar.functions import MIRRORED_ORDER
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import GpmParts

if TYPE_CHECKING:
    from oxiseq.engine.plan.query import QueryPlan

_UNKNOWN: Final = -1
_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_EXACT: Final = (f"{_XSD}integer", f"{_XSD}decimal")
"""Types of constants: values, of whatever type, are on the same side of a number as of what it is rounded to."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """A condition of a GPM that compares one of its variables with a number. `strictness` rises as it lets less
    through, among those with this `operator`; the variable is on its left."""

    name: str
    variable: Variable
    operator: str
    strictness: Decimal
    condition: Expression

    @property
    def letter(self) -> Letter:
        """Its GPM, by itself."""
        return (self.name,)


class LadderKind(NamedTuple):
    """What the queries of a ladder (automaton/ladders.py) have in common, and of one the threshold in which it may
    differ from the others; where matches are counted, these may differ in the length of their windows, too."""

    alike: Hashable
    threshold: Threshold | None


def ladder_of(plan: QueryPlan) -> LadderKind | None:
    """On which ladder a query may be; None: on none."""
    query, window, sequence = plan.query, plan.window, plan.runner.sequence
    threshold = beginning(plan)
    if not _begins_with_an_event(plan) or (threshold is None and not sequence.counted):
        return None
    if sequence.counted:
        if window is None:
            return None  # what is counted does not say when it began
        window = replace(window, size=0)
    own = query.gpms if threshold is None else _without(plan, threshold)
    return LadderKind((plan.streams, query.streams, query.sequence, query.until, window, sequence.keys, own), threshold)


def beginning(plan: QueryPlan) -> Threshold | None:
    """The threshold on the event that begins matches, of which no other event's fate depends; None: there is no such
    one, or more begins with that event."""
    edges = plan.runner.sequence.graph.edges
    starts = {arm.letter for edge in edges if edge.source == START for arm in edge.arms}
    others = {letter for edge in edges if edge.source != START for letter, _ in edge.compared}
    if len(starts) != 1 or starts & others or not _begins_with_an_event(plan):
        return None
    [letter] = starts
    own = next(each for each in plan.letters if each.letter == letter)
    gpm = plan.runner.plain_gpm(own)
    return None if gpm is None else next(iter(_of_gpm(letter[0], gpm.parts)), None)


def _begins_with_an_event(plan: QueryPlan) -> bool:
    """Whether nothing of a match depends on what came before its first event, nor anything but its end on time."""
    graph, window = plan.runner.sequence.graph, plan.window
    if plan.clauses != NO_CLAUSES or plan.runner.written.distinct:
        return False
    if window is not None and (window.events or not window.sliding):
        return False  # such windows begin with the query
    return not any(
        each.bounded or each.waits or each.moves or (each.source == START and each.guards) for each in graph.edges
    )


def _without(plan: QueryPlan, threshold: Threshold) -> Hashable:
    """What its GPMs have in common with those of queries that differ in this constant alone."""
    return tuple(
        (gpm, None) if gpm.name != threshold.name else _bare(plan.runner.gpms[gpm.name].parts, threshold)
        for gpm in plan.query.gpms
    )


def _bare(parts: GpmParts, threshold: Threshold) -> Hashable:
    others = tuple(each for each in parts.filters if each != threshold.condition)
    return (
        parts.gpm.name,
        parts.gpm.stream,
        parts.pattern,
        others,
        parts.stateful,
        threshold.variable,
        threshold.operator,
    )


def _of_gpm(name: str, parts: GpmParts) -> list[Threshold]:
    found = (threshold_of(name, condition) for condition in parts.filters)
    return [each for each in found if each is not None and each.variable in parts.pattern_variables]


def threshold_of(name: str, condition: Expression) -> Threshold | None:
    """A condition that compares a variable with a number; None: it is another."""
    if not isinstance(condition, Call) or condition.name not in MIRRORED_ORDER:
        return None
    (left, right), operator = condition.args, condition.name
    if isinstance(left, Literal):
        left, right, operator = right, left, MIRRORED_ORDER[operator]
    number = _number(right)
    if not isinstance(left, Variable) or number is None:
        return None
    return Threshold(name, left, operator, number if operator.startswith(">") else -number, condition)


def _number(constant: Expression) -> Decimal | None:
    """The number that a constant is, if comparing with it rounds nothing of it away."""
    if not isinstance(constant, Literal) or constant.datatype.value not in _EXACT:
        return None
    digits = constant.value.strip().lstrip("+-")
    return Decimal(constant.value) if digits.replace(".", "", 1).isdecimal() and digits.isascii() else None


class ValueRanks:
    """Looks each value up once, as long as ids mean the same: of `variable`, by `conditions` that grow stricter. A
    value that passes the first i of them has the rank `counts[i - 1]`."""

    def __init__(
        self, variable: Variable, conditions: Sequence[Expression], counts: Sequence[int], terms: TermDictionary
    ) -> None:
        self._variable, self._conditions, self._counts, self._terms = variable, conditions, counts, terms
        self._known = np.zeros(0, np.int32)
        self._filters: dict[int, ConditionFilter] = {}
        """By number of a condition, as far as they have been asked."""
        self._generation = terms.generation

    @classmethod
    def of_thresholds(cls, thresholds: Sequence[Threshold], terms: TermDictionary) -> ValueRanks:
        """Those of thresholds on one variable, the loosest one first: a value's rank is how many it passes."""
        how = [threshold.strictness for threshold in thresholds]
        firsts = [n for n in range(len(how)) if n == 0 or how[n] != how[n - 1]]
        conditions = tuple(thresholds[n].condition for n in firsts)
        return cls(thresholds[0].variable, conditions, (*firsts[1:], len(how)), terms)

    def of(self, ids: NDArray[np.integer]) -> NDArray[np.int32]:
        """The ranks of values with these ids."""
        if self._generation != self._terms.generation:
            self._known = np.zeros(0, np.int32)
            self._generation = self._terms.generation
        known, most = self._known, int(ids.max(initial=0)) + 1
        if most > len(known):
            longer = np.full(max(most, 2 * len(known)), _UNKNOWN, np.int32)
            longer[: len(known)] = known
            known = self._known = longer
        new = np.unique(ids[known[ids] == _UNKNOWN])
        if len(new):
            self._look_up(new.astype(np.uint32), 0, len(self._conditions))
        ranks: NDArray[np.int32] = known[ids]
        return ranks

    def _look_up(self, ids: NDArray[np.uint32], low: int, high: int) -> None:
        """Of values that meet the first `low` conditions and at most `high`: halve the open range."""
        if low == high or not len(ids):
            self._known[ids] = self._counts[low - 1] if low else 0
            return
        middle = (low + high) // 2
        if middle not in self._filters:  # to compile one takes longer than to ask it
            asked = condition(self._conditions[middle])
            self._filters[middle] = ConditionFilter((asked,), (self._variable,), self._terms)
        meets = self._filters[middle].keep(ids[:, None])
        self._look_up(ids[meets], middle + 1, high)
        self._look_up(ids[~meets], low, middle)
