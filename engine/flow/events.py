"""MATCH as operators: FIRST, LAST, SEQ and its selections (RSEP-QL, Eq. 4 to 11; semantics.md 4; operators.md, 4.2).

In the flow: an event pattern, rows of its events → **operators of its mappings**.

The left operand of SEQ is evaluated on the items before each second mapping starts (Eq. 7). All that this part depends
on is that moment, so a pattern is compiled *before moments*: a row for each mapping and each moment before which it
holds. Two things spare that:

- Before a moment a *stable* pattern holds the same mappings as ever, less those that end too late. An event is stable,
  and so are FIRST of what is stable (the first of all is the first before a moment, if it lies before it at all), and
  SEQ and SEQ^c with a stable second operand (the first operand covers what lies before the second in any case).
- LAST of what is stable is the last that lies before each moment: one step in a timeline (plan.Follow).

What is left, for instance `(A SEQ^r B) SEQ C`, is computed for each moment at which a C starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal

from pyoxigraph import Variable

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.relations import Hidden, Relation, Relations
from oxiseq.grammar.algebra import Choice, EventName, EventPattern, FirstOf, Following, LastOf
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.rsp_algebra import event_names

_EDGE: Final[Mapping[Choice, Literal["EARLIEST", "LATEST"]]] = {
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
class Mappings:
    """An operator of event mappings. start, end, items, moment: columns of upper halves; items: of each event, in the
    order of the text; moment: of that before which the mapping holds. Variables come first."""

    node: int
    variables: tuple[Variable, ...]
    certain: frozenset[Variable]
    start: int
    end: int
    items: tuple[int, ...]
    moment: int | None = None

    def places(self, variables: Sequence[Variable], first: int = 0) -> tuple[int, ...]:
        """The places of variables behind so many other columns."""
        return tuple(first + self.variables.index(v) for v in variables)


@dataclass(frozen=True, slots=True)
class Used:
    """The items of each mapping: an operator without memory, two raw columns for each event of a pattern, consolidated
    by tick; `events`: their names, in that order."""

    node: int
    events: tuple[str, ...]


def is_stable(pattern: EventPattern) -> bool:
    """Whether its mappings before a moment are those of all that end before it."""
    match pattern:
        case EventName():
            return True
        case FirstOf(inner):
            return is_stable(inner)
        case Following(_, second, Choice.UNRESTRICTED | Choice.CHRONOLOGICAL):
            return is_stable(second)
        case _:
            return False


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

    def mappings(self, pattern: EventPattern) -> Mappings:
        """All that a pattern has."""
        match pattern:
            case EventName(name):
                return self._event(self._rows[name])
            case FirstOf(inner) | LastOf(inner):
                return self._first_or_last(self.mappings(inner), isinstance(pattern, LastOf))
            case Following(left, right, Choice.NAIVE):
                return self.mappings(Following(LastOf(left), LastOf(right)))
            case Following(left, right, choice):
                return self._sequence(left, self.mappings(right), choice)

    def _before(self, pattern: EventPattern, moments: int) -> Mappings:
        """A pattern's rows before each of some moments: an operator of two raw columns, each row once."""
        times = p.Timed(moments, 0)
        match pattern:
            case _ if is_stable(pattern):
                return self._cut(self.mappings(pattern), times)
            case LastOf(inner) if is_stable(inner):
                return self._cut(self.mappings(inner), times, "LATEST")
            case FirstOf(inner) | LastOf(inner):
                return self._first_or_last(self._before(inner, moments), isinstance(pattern, LastOf))
            case Following(left, right, Choice.NAIVE):
                return self._before(Following(LastOf(left), LastOf(right)), moments)
            case Following(left, right, Choice.RECENT) if is_stable(right):
                return self._recent_before(left, self.mappings(right), times)
            case Following(left, right, choice):
                return self._sequence(left, self._before(right, moments), choice)
        raise AssertionError(pattern)  # an event is stable

    def _event(self, rows: EventRows) -> Mappings:
        node, time = self._sheet.add(rows.given(items=self._items)), len(rows.variables)
        return Mappings(node, rows.variables, rows.certain, time, time, (time + 2,) if self._items else ())

    def _cut(self, found: Mappings, moments: p.Timed, choice: Literal["ALL", "LATEST"] = "ALL") -> Mappings:
        """Mappings and the moments that they end before."""
        node = self._sheet.add(p.Follow(p.Timed(found.node, found.end), moments, choice))
        return replace(found, node=node, moment=self._sheet.width(found.node))

    def _first_or_last(self, found: Mappings, latest: bool) -> Mappings:
        """FIRST, LAST: of each moment, if there are moments."""
        return replace(found, node=self._sheet.add(p.Extreme(found.node, _halves(found.moment), found.end, latest)))

    # --- SEQ ----------------------------------------------------------------------------------------

    def _sequence(self, left: EventPattern, right: Mappings, choice: Choice) -> Mappings:
        """SEQ, SEQ^c, SEQ^r with second mappings, which may have moments."""
        node, first = self._pairs(left, right, choice)
        if choice is not Choice.UNRESTRICTED:
            # of the second mappings that are equal on what is shared, and have a first one: the first, or the last
            width = self._sheet.width(first.node)
            key = (*_halves(right.moment, width), *right.places(_shared(first, right), width))
            node = self._sheet.add(p.Extreme(node, key, width + right.end, choice is Choice.RECENT))
        return self._joined(node, first, right)

    def _recent_before(self, left: EventPattern, right: Mappings, moments: p.Timed) -> Mappings:
        """SEQ^r before moments, with stable second mappings: their partners do not depend on the moment."""
        node, first = self._pairs(left, right, Choice.RECENT)
        width, moment = self._sheet.width(first.node), self._sheet.width(node)
        shared = right.places(_shared(first, right), width)
        pairs = p.Timed(node, width + right.end)
        found = self._sheet.add(p.Follow(pairs, moments, "ALL" if shared else "LATEST"))
        if shared:
            found = self._sheet.add(p.Extreme(found, (*_halves(moment), *shared), pairs.time, latest=True))
        return self._joined(found, first, replace(right, moment=moment - width))

    def _pairs(self, left: EventPattern, right: Mappings, choice: Choice) -> tuple[int, Mappings]:
        """Each second mapping with those of the left operand on what lies before it that agree; of these the first for
        SEQ^c, the last for SEQ^r. Columns: of the left, then of the right."""
        if isinstance(left, LastOf) and is_stable(left.events):
            return self._with_last(left.events, right)
        if not is_stable(left):
            first, node = self._at_moments(left, right)
        else:
            first = self.mappings(left)
            shared = _Shared.of(first, right)
            sides = self._timed(first, right, shared)
            if choice is not Choice.UNRESTRICTED and not shared.loose:
                return self._sheet.add(p.Follow(*sides, _EDGE[choice])), first
            node = self._sheet.add(p.Follow(*sides))
        if choice is Choice.UNRESTRICTED:
            return node, first
        width = self._sheet.width(first.node)
        second = tuple(range(width, width + self._sheet.width(right.node)))
        return self._sheet.add(p.Extreme(node, second, first.end, choice is Choice.RECENT)), first

    def _with_last(self, left: EventPattern, right: Mappings) -> tuple[int, Mappings]:
        """LAST(stable) SEQ: the last before each second mapping, if it agrees. All that are last end at one time: SEQ^c
        and SEQ^r choose nothing."""
        first = self.mappings(left)
        both = _Shared.of(first, right)
        ends = p.Timed(first.node, first.end, (), (*both.sure, *both.loose))
        starts = p.Timed(right.node, right.start, (), (*both.sure_right, *both.loose_right))
        return self._sheet.add(p.Follow(ends, starts, "LATEST")), first

    @staticmethod
    def _timed(first: Mappings, second: Mappings, shared: _Shared) -> tuple[p.Timed, p.Timed]:
        ends = p.Timed(first.node, first.end, shared.sure, shared.loose)
        return ends, p.Timed(second.node, second.start, shared.sure_right, shared.loose_right)

    def _at_moments(self, left: EventPattern, right: Mappings) -> tuple[Mappings, int]:
        """A left operand before each moment at which a second mapping starts, and its pairs with these."""
        first = self._before(left, self._sheet.add(p.Distinct(self._pick(right.node, _halves(right.start)))))
        shared = _Shared.of(first, right)
        one = p.Arrange(first.node, (*_halves(first.moment), *shared.sure), shared.loose)
        other = p.Arrange(right.node, (*_halves(right.start), *shared.sure_right), shared.loose_right)
        return first, self._sheet.add(p.Join(self._sheet.add(one), self._sheet.add(other)))

    def _joined(self, node: int, first: Mappings, second: Mappings) -> Mappings:
        """What pairs make: both sides' variables, the start of the first, the end of the second, its moment."""
        width, columns = self._sheet.width(first.node), list[tuple[int, ...]]()
        variables = tuple(dict.fromkeys([*first.variables, *second.variables]))
        for v in variables:
            one = first.places([v]) if v in first.variables else ()
            other = second.places([v], width) if v in second.variables else ()
            columns.append(one if v in first.certain else other if v in second.certain else one + other)
        times = [first.start, width + second.end, *first.items, *(width + place for place in second.items)]
        times += [] if second.moment is None else [width + second.moment]
        columns += [(place,) for first_half in times for place in _halves(first_half)]
        start, items = len(variables), len(first.items) + len(second.items)
        return Mappings(
            self._sheet.pick(node, tuple(columns)),
            variables,
            first.certain | second.certain,
            start,
            start + 2,
            tuple(start + 4 + 2 * i for i in range(items)),
            None if second.moment is None else start + 4 + 2 * items,
        )

    def _pick(self, node: int, places: Sequence[int]) -> int:
        return self._sheet.pick(node, tuple((place,) for place in places))


@dataclass(frozen=True, slots=True)
class _Shared:
    """The places of the variables that two mappings share: those that both surely bind, and the others."""

    sure: tuple[int, ...]
    sure_right: tuple[int, ...]
    loose: tuple[int, ...]
    loose_right: tuple[int, ...]

    @classmethod
    def of(cls, first: Mappings, second: Mappings) -> _Shared:
        every = _shared(first, second)
        sure = [v for v in every if v in first.certain and v in second.certain]
        loose = [v for v in every if v not in sure]
        return cls(first.places(sure), second.places(sure), first.places(loose), second.places(loose))


def _shared(first: Mappings, second: Mappings) -> list[Variable]:
    return [v for v in first.variables if v in second.variables]


def _halves(upper: int | None, first: int = 0) -> tuple[int, ...]:
    """The columns of a number behind so many others; of None: none."""
    return () if upper is None else (first + upper, first + upper + 1)
