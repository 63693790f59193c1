"""MATCH as operators: FIRST, LAST, SEQ and its selections (RSEP-QL, Eq. 4 to 11; semantics.md 4; operators.md, 4.2).

In the flow: an event pattern, rows of its events → **operators of its mappings**.

The left operand of SEQ is evaluated as µ2(E1): with the values of each second mapping, on the items before that starts
(Eq. 7). All that it depends on is these values and that moment, so a pattern is compiled *with substitutions*: a row
for each mapping and each substitution that it agrees with and ends before. Two things spare that:

- A *steady* pattern has with any substitution the mappings that it has without, less those that do not agree or end
  too late. An event is steady. So are, where nothing is put in that they choose among, FIRST of what is steady (the
  first of all is the first before a moment, if it lies before it at all), and SEQ and SEQ^c with a steady second
  operand (the first operand covers what lies before the second in any case).
- FIRST and LAST of what is steady are the first and last by the values, before each moment: one step in a timeline
  (plan.Follow).

What is left, for instance `(A SEQ^r B) SEQ C`, is computed for each substitution that a C makes. SEQ^n substitutes
nothing (Eq. 9): the last of both operands are paired.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal, TypeAlias

from pyoxigraph import Variable

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.relations import Hidden, Relation, Relations
from oxiseq.grammar.algebra import Choice, EventName, EventPattern, FirstOf, Following, LastOf
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.rsp_algebra import event_names

_Choice: TypeAlias = Literal["ALL", "EARLIEST", "LATEST"]
_EDGE: Final[Mapping[Choice, _Choice]] = {
    Choice.CHRONOLOGICAL: "EARLIEST",
    Choice.RECENT: "LATEST",
}


@dataclass(frozen=True, slots=True)
class EventRows:
    """The rows of an EVENT definition: the name of its `Given`, which has a column for each variable, then the time of
    the item (times.py), then, if requested, the item's place in its stream, as two raw columns too."""

    name: str
    variables: tuple[Variable, ...]
    certain: frozenset[Variable]

    def given(self, *, items: bool) -> p.Given:
        """The rows' source."""
        width = len(self.variables) + (4 if items else 2)
        return p.Given(self.name, width, tuple(range(len(self.variables), width)))


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a variable: the columns that may hold its value, and whether one surely does."""

    places: tuple[int, ...]
    sure: bool


@dataclass(frozen=True, slots=True)
class Substitutions:
    """An operator of what second mappings put into their first operand: a column for each variable, then the moment
    before which the operand is evaluated, as two raw columns. Each row once."""

    node: int
    variables: tuple[Variable, ...]
    certain: frozenset[Variable]

    @property
    def width(self) -> int:
        """How many columns it has."""
        return len(self.variables) + 2

    def known(self, first: int = 0) -> dict[Variable, Known]:
        """Its values, behind so many other columns."""
        return {v: Known((first + place,), v in self.certain) for place, v in enumerate(self.variables)}


@dataclass(frozen=True, slots=True)
class Mappings:
    """An operator of event mappings. start, end, items: columns of upper halves; items: of each event, in the order of
    the text; those of the substitution with which a mapping holds, if it is evaluated with any, begin `at` a column.
    Variables come first."""

    node: int
    variables: tuple[Variable, ...]
    certain: frozenset[Variable]
    start: int
    end: int
    items: tuple[int, ...]
    within: Substitutions | None = None
    at: int = 0

    def places(self, variables: Sequence[Variable], first: int = 0) -> tuple[int, ...]:
        """The places of variables behind so many other columns."""
        return tuple(first + self.variables.index(v) for v in variables)

    def substitution(self, first: int = 0) -> tuple[int, ...]:
        """All columns of the substitution, behind so many others."""
        return () if self.within is None else tuple(range(first + self.at, first + self.at + self.within.width))

    def known(self, first: int = 0) -> dict[Variable, Known]:
        """Its own values and those of its substitution, which agree; behind so many other columns."""
        found = {} if self.within is None else self.within.known(first + self.at)
        for place, v in enumerate(self.variables, first):
            outer = found.get(v)
            if outer is None or v in self.certain:
                found[v] = Known((place,), v in self.certain)
            elif not outer.sure:
                found[v] = Known((*outer.places, place), False)
        return found


@dataclass(frozen=True, slots=True)
class Used:
    """The items of each mapping: an operator without memory, two raw columns for each event of a pattern, consolidated
    by tick; `events`: their names, in that order."""

    node: int
    events: tuple[str, ...]


class Events:
    """Compiles event patterns into a sheet; `rows`: of their events, by name; `items`: whether mappings say which items
    justify them."""

    def __init__(self, relations: Relations, rows: Mapping[str, EventRows], *, items: bool = False) -> None:
        self._relations = relations
        self._sheet = relations.sheet
        self._rows, self._items = rows, items

    # --- for WHERE ----------------------------------------------------------------------------------

    def match(
        self, pattern: EventPattern, variables: Sequence[Variable], *, timed: bool = False
    ) -> tuple[Relation, tuple[Hidden, ...]]:
        """The mappings of MATCH, each once. timed: with their times, which make mappings different: the hidden columns
        of the start, then of the end, two each; without: none."""
        found = self.mappings(pattern)
        times = (found.start, found.start + 1, found.end, found.end + 1) if timed else ()
        picked = self._pick(found.node, (*found.places(variables), *times))
        hidden = tuple(self._relations.hidden() for _ in times)
        relation = Relation(self._sheet.add(p.Distinct(picked)), (*variables, *hidden), found.certain & {*variables})
        return replace(relation, certain=relation.certain | {*hidden}), hidden

    def used(self, pattern: EventPattern) -> Used:
        """The items that justify the mappings of MATCH."""
        found = self.mappings(pattern)
        places = tuple(place for first in found.items for place in (first, first + 1))
        node = self._sheet.add(p.Consolidate(self._pick(found.node, places)))
        return Used(node, tuple(name.name for name in event_names(pattern)))

    # --- patterns -----------------------------------------------------------------------------------

    def mappings(self, pattern: EventPattern, within: Substitutions | None = None) -> Mappings:
        """All that a pattern has, or, with substitutions, what it has with each."""
        if within is not None and self._is_steady(pattern, frozenset(within.variables)):
            return self._cut(self.mappings(pattern), within)
        match pattern:
            case EventName(name):
                return self._event(self._rows[name])
            case FirstOf(inner) | LastOf(inner):
                return self._first_or_last(inner, within, latest=isinstance(pattern, LastOf))
            case Following(left, right, Choice.NAIVE):
                return self._naive(self.mappings(LastOf(left), within), self.mappings(LastOf(right), within))
            case Following(left, right, Choice.RECENT) if within is not None and self._waits(left, right, within):
                return self._recent_before(left, self.mappings(right), within)
            case Following(left, right, choice):
                return self._sequence(left, self.mappings(right, within), choice)

    def _event(self, rows: EventRows) -> Mappings:
        node, time = self._sheet.add(rows.given(items=self._items)), len(rows.variables)
        return Mappings(node, rows.variables, rows.certain, time, time, (time + 2,) if self._items else ())

    def _variables(self, pattern: EventPattern) -> frozenset[Variable]:
        return frozenset(v for name in event_names(pattern) for v in self._rows[name.name].variables)

    def _certain(self, pattern: EventPattern) -> frozenset[Variable]:
        return frozenset[Variable]().union(*(self._rows[name.name].certain for name in event_names(pattern)))

    def _is_steady(self, pattern: EventPattern, values: frozenset[Variable]) -> bool:
        """Whether with values for some variables, before a moment, it has those of its mappings that agree and end
        before it."""
        match pattern:
            case EventName():
                return True
            case FirstOf(inner):
                return values.isdisjoint(self._variables(inner)) and self._is_steady(inner, values)
            case Following(left, right, Choice.UNRESTRICTED):
                return self._is_steady(right, values) and self._is_steady(left, values - self._certain(right))
            case Following(left, right, Choice.CHRONOLOGICAL):
                grouping = self._certain(right) & self._variables(left)
                return values & self._variables(pattern) <= grouping and self._is_steady(right, values)
            case _:
                return False

    def _cut(self, found: Mappings, within: Substitutions, choice: _Choice = "ALL") -> Mappings:
        """Mappings and the substitutions that they agree with and end before."""
        shared = _Shared.of(found, within.known())
        moments = p.Timed(within.node, len(within.variables), shared.sure_right, shared.loose_right)
        node = self._sheet.add(p.Follow(p.Timed(found.node, found.end, shared.sure, shared.loose), moments, choice))
        return replace(found, node=node, within=within, at=self._sheet.width(found.node))

    def _first_or_last(self, inner: EventPattern, within: Substitutions | None, *, latest: bool) -> Mappings:
        """FIRST, LAST: with each substitution, if there are any."""
        if within is not None and self._is_steady(inner, frozenset(within.variables)):
            found = self.mappings(inner)
            if not _Shared.of(found, within.known()).loose:
                return self._cut(found, within, "LATEST" if latest else "EARLIEST")
        found = self.mappings(inner, within)
        node = self._edge(found.node, found.substitution(), found.end, latest)
        return replace(found, node=node)

    def _edge(self, node: int, key: tuple[int, ...], time: int, latest: bool) -> int:
        """By key the rows with the first time, or the last: all that are equal."""
        return self._sheet.add(p.Best(node, key, p.by_time(time, latest), ties=True))

    # --- SEQ ----------------------------------------------------------------------------------------

    def _naive(self, first: Mappings, second: Mappings) -> Mappings:
        """SEQ^n of the last of both operands, which have the same substitutions, if any."""
        shared = _Shared.of(first, replace(second, within=None).known())
        ends = p.Timed(first.node, first.end, (*first.substitution(), *shared.sure), shared.loose)
        starts = p.Timed(second.node, second.start, (*second.substitution(), *shared.sure_right), shared.loose_right)
        return self._joined(self._sheet.add(p.Follow(ends, starts)), first, second)

    def _sequence(self, left: EventPattern, right: Mappings, choice: Choice) -> Mappings:
        """SEQ, SEQ^c, SEQ^r with second mappings, which may have substitutions."""
        node, first = self._pairs(left, right, choice)
        if choice is not Choice.UNRESTRICTED:
            # of the second mappings that are equal on what is shared, and have a first one: the first, or the last
            width = self._sheet.width(first.node)
            node, shared = self._merged(node, self._rivals(first, right, width))
            key = (*right.substitution(width), *shared)
            node = self._edge(node, key, width + right.end, choice is Choice.RECENT)
        return self._joined(node, first, right)

    @staticmethod
    def _rivals(first: Mappings, right: Mappings, width: int) -> list[tuple[int, ...]]:
        """What is shared, where no value was surely put in: second mappings with a substitution compete by it. width:
        of the columns before theirs."""
        outer = frozenset[Variable]() if right.within is None else right.within.certain
        known = right.known(width)
        return [known[v].places for v in right.variables if v in first.variables and v not in outer]

    def _merged(self, node: int, values: Sequence[tuple[int, ...]]) -> tuple[int, tuple[int, ...]]:
        """The columns of values that may be in several: of an operator that has a further one for each of these."""
        width, more, found = self._sheet.width(node), list[tuple[int, ...]](), list[int]()
        for places in values:
            found.append(places[0] if len(places) == 1 else width + len(more))
            more += [places] if len(places) > 1 else []
        if not more:
            return node, tuple(found)
        return self._sheet.pick(node, (*((place,) for place in range(width)), *more)), tuple(found)

    def _waits(self, left: EventPattern, right: EventPattern, within: Substitutions) -> bool:
        """Whether substitutions only choose among the pairs that SEQ^r has without them."""
        values = frozenset(within.variables)
        first = values & self._variables(left)
        return first <= self._certain(right) and self._is_steady(right, values)

    def _recent_before(self, left: EventPattern, right: Mappings, within: Substitutions) -> Mappings:
        """SEQ^r with substitutions, of which the partners of second mappings do not depend."""
        node, first = self._pairs(left, right, Choice.RECENT)
        width, at = self._sheet.width(first.node), self._sheet.width(node)
        shared = _Shared.of(right, within.known(), width)
        pairs = p.Timed(node, width + right.end, shared.sure, shared.loose)
        moments = p.Timed(within.node, len(within.variables), shared.sure_right, shared.loose_right)
        right = replace(right, within=within, at=at - width)
        rivals = self._rivals(first, right, width)
        if not rivals and not shared.loose:
            return self._joined(self._sheet.add(p.Follow(pairs, moments, "LATEST")), first, right)
        found, key = self._merged(self._sheet.add(p.Follow(pairs, moments)), rivals)
        key = (*right.substitution(width), *key)
        return self._joined(self._edge(found, key, pairs.time, latest=True), first, right)

    def _pairs(self, left: EventPattern, right: Mappings, choice: Choice) -> tuple[int, Mappings]:
        """Each second mapping with those of the left operand on what lies before it that agree; of these the first for
        SEQ^c, the last for SEQ^r. Columns: of the left, then of the right."""
        known = right.known()
        if not self._is_steady(left, frozenset(known)):
            edge = self._with_edge(left, right)
            if edge is not None:
                return edge
            first, node = self._substituted(left, right)
        else:
            first = self.mappings(left)
            shared = _Shared.of(first, known)
            sides = shared.timed(first, right)
            if choice is not Choice.UNRESTRICTED and not shared.loose:
                return self._sheet.add(p.Follow(*sides, _EDGE[choice])), first
            node = self._sheet.add(p.Follow(*sides))
        if choice is Choice.UNRESTRICTED:
            return node, first
        width = self._sheet.width(first.node)
        second = tuple(range(width, width + self._sheet.width(right.node)))
        return self._edge(node, second, first.end, choice is Choice.RECENT), first

    def _with_edge(self, left: EventPattern, right: Mappings) -> tuple[int, Mappings] | None:
        """FIRST(steady) SEQ, LAST(steady) SEQ: the first or last that agrees before each second mapping. All these end
        at one time: SEQ^c and SEQ^r choose nothing. None: of another operand."""
        known = right.known()
        if not isinstance(left, FirstOf | LastOf) or not self._is_steady(left.events, frozenset(known)):
            return None
        first = self.mappings(left.events)
        shared = _Shared.of(first, known)
        if shared.loose:
            return None
        edge = _EDGE[Choice.RECENT if isinstance(left, LastOf) else Choice.CHRONOLOGICAL]
        return self._sheet.add(p.Follow(*shared.timed(first, right), edge)), first

    def _substituted(self, left: EventPattern, right: Mappings) -> tuple[Mappings, int]:
        """A left operand with the substitution that each second mapping makes, and its pairs with these."""
        here = self._variables(left)
        known = {v: each for v, each in right.known().items() if v in here}
        node, places = self._merged(right.node, [each.places for each in known.values()])
        key = (*places, *_halves(right.start))
        distinct = self._sheet.add(p.Distinct(self._pick(node, key)))
        certain = frozenset(v for v, each in known.items() if each.sure)
        first = self.mappings(left, Substitutions(distinct, tuple(known), certain))
        one, other = p.Arrange(first.node, first.substitution()), p.Arrange(node, key)
        return first, self._sheet.add(p.Join(self._sheet.add(one), self._sheet.add(other)))

    def _joined(self, node: int, first: Mappings, second: Mappings) -> Mappings:
        """What pairs make: both sides' variables, the start of the first, the end of the second, its substitution."""
        width, columns = self._sheet.width(first.node), list[tuple[int, ...]]()
        variables = tuple(dict.fromkeys([*first.variables, *second.variables]))
        for v in variables:
            one = first.places([v]) if v in first.variables else ()
            other = second.places([v], width) if v in second.variables else ()
            columns.append(one if v in first.certain else other if v in second.certain else one + other)
        times = [first.start, width + second.end, *first.items, *(width + place for place in second.items)]
        columns += [(place,) for first_half in times for place in _halves(first_half)]
        start, items, at = len(variables), len(first.items) + len(second.items), len(columns)
        columns += [(place,) for place in second.substitution(width)]
        return Mappings(
            self._sheet.pick(node, tuple(columns)),
            variables,
            first.certain | second.certain,
            start,
            start + 2,
            tuple(start + 4 + 2 * i for i in range(items)),
            second.within,
            at,
        )

    def _pick(self, node: int, places: Sequence[int]) -> int:
        return self._sheet.pick(node, tuple((place,) for place in places))


@dataclass(frozen=True, slots=True)
class _Shared:
    """The places of the variables that mappings share with what is known: those that both surely bind, and the others,
    each with every place where it may be known."""

    sure: tuple[int, ...]
    sure_right: tuple[int, ...]
    loose: tuple[int, ...]
    loose_right: tuple[int, ...]

    @classmethod
    def of(cls, first: Mappings, known: Mapping[Variable, Known], width: int = 0) -> _Shared:
        """width: of the columns before those of the mappings."""
        sure, loose = list[tuple[int, int]](), list[tuple[int, int]]()
        for place, v in enumerate(first.variables, width):
            if v in known:
                both = known[v].sure and v in first.certain
                (sure if both else loose).extend((place, other) for other in known[v].places)
        columns = [tuple(pair[side] for pair in pairs) for pairs in (sure, loose) for side in (0, 1)]
        return cls(*columns)

    def timed(self, first: Mappings, second: Mappings) -> tuple[p.Timed, p.Timed]:
        """Both sides of a sequence."""
        ends = p.Timed(first.node, first.end, self.sure, self.loose)
        return ends, p.Timed(second.node, second.start, self.sure_right, self.loose_right)


def _halves(upper: int) -> tuple[int, int]:
    """The columns of a number."""
    return upper, upper + 1
