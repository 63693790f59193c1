"""Which queries are a family: what prevents it, what they have in common, and how strict each is.

In the flow: plans of queries that are alike → **family** (families.py) → a plan that finds the matches of all.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from decimal import Decimal
from typing import Final

from pyoxigraph import Literal, Variable

from oxiseq.engine.matches.plan import NO_CLAUSES
from oxiseq.engine.plan.families import Family, Ranked
from oxiseq.engine.plan.query import QueryPlan, plain_gpm
from oxiseq.engine.sequence.positions import START, Letter
from oxiseq.grammar.algebra import Call, Expression
from oxiseq.grammar.functions import MIRRORED_ORDER
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import GpmParts

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


def thresholds(plan: QueryPlan) -> tuple[Threshold, ...]:
    """Those of a query in which others may differ: the first of each GPM that events match by themselves, and whose
    events nothing is negated by."""
    guarded = {guard.letter for edge in plan.runner.sequence.graph.edges for guard in edge.guards}
    kept = set[str]()
    for letter in plan.letters:
        if not letter.positive or len(letter.letter) != 1 or letter.letter in guarded:
            kept.update(letter.letter)
    gpms = ((name, gpm.parts) for name, gpm in plan.runner.gpms.items() if name not in kept)
    return tuple(threshold for name, parts in gpms for threshold in _of_gpm(name, parts)[:1])


def beginning(plan: QueryPlan) -> Threshold | None:
    """The threshold in which queries may differ whose edges stand once in an automaton (automaton/ladders.py): on the
    event that begins a match, of which no other event's fate depends. None: there is no such one."""
    graph, window = plan.runner.sequence.graph, plan.window
    starts = {arm.letter for edge in graph.edges if edge.source == START for arm in edge.arms}
    others = {letter for edge in graph.edges if edge.source != START for letter, _ in edge.compared}
    if plan.runner.sequence.counted:
        return None  # nodes do not say with which event matches begin
    if len(starts) != 1 or starts & others or plan.clauses != NO_CLAUSES or plan.runner.written.distinct:
        return None
    if window is not None and (window.events or not window.sliding):
        return None  # such windows begin with the query
    if any(each.bounded or each.waits or each.moves or (each.source == START and each.guards) for each in graph.edges):
        return None
    [letter] = starts
    own = next(each for each in plan.letters if each.letter == letter)
    gpm = plain_gpm(own, plan)
    return None if gpm is None else next(iter(_of_gpm(letter[0], gpm.parts)), None)


def alike(plan: QueryPlan, threshold: Threshold) -> Hashable:
    """The same in queries that differ in a constant and in their answers alone."""
    query, sequence = plan.query, plan.runner.sequence
    gpms = without_thresholds(plan, (threshold,))
    return plan.streams, query.streams, query.sequence, plan.window, sequence.keys, gpms


def strictness(plan: QueryPlan) -> tuple[Decimal, ...]:
    """Of each of its thresholds."""
    return tuple(threshold.strictness for threshold in thresholds(plan))


def without_thresholds(plan: QueryPlan, but: Iterable[Threshold] | None = None) -> Hashable:
    """What its GPMs have in common with those of queries that differ in constants of thresholds alone: of all, or of
    these."""
    taken = {threshold.name: threshold for threshold in (thresholds(plan) if but is None else but)}
    return tuple(
        (gpm, None) if gpm.name not in taken else _bare(plan.runner.gpms[gpm.name].parts, taken[gpm.name])
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


def chains(plans: Sequence[QueryPlan]) -> list[list[int]]:
    """Plans that are alike but for their thresholds, by number, in as few families as is easily found: in each the next
    one is as strict as the one before or stricter, in all thresholds."""
    how = [strictness(plan) for plan in plans]
    found: list[list[int]] = []
    for number in sorted(range(len(plans)), key=how.__getitem__):
        for chain in found:
            if all(a <= b for a, b in zip(how[chain[-1]], how[number], strict=True)):
                chain.append(number)
                break
        else:
            found.append([number])
    return found


def family_of(plans: Sequence[QueryPlan]) -> Family | None:
    """Of plans in order of strictness; None if all are as strict."""
    members = tuple(dict.fromkeys(strictness(plan) for plan in plans))
    if len(members) == 1:
        return None
    by_member = {strictness(plan): thresholds(plan) for plan in plans}
    ranked = []
    for place, of_gpm in enumerate(zip(*(by_member[member] for member in members), strict=True)):
        steps = [number for number in range(1, len(members)) if members[number][place] != members[number - 1][place]]
        if steps:
            conditions = tuple(of_gpm[number].condition for number in (0, *steps))
            ranked.append(Ranked((of_gpm[0].name,), of_gpm[0].variable, conditions, (*steps, len(members))))
    return Family(tuple(ranked), members)


def member_of(plan: QueryPlan, family: Family) -> int:
    """The number of a query in its family."""
    return family.members.index(strictness(plan))
