"""Matches → rows of groups, at an instant, when a window closes, or every so often (semantics.md 2.6b).

In the flow: matches as keys and measures, in order of their ends → **groups of the extent** → rows. The extent is
all matches so far, those of the current window, or those within the sliding window; a group's totals follow it as
matches come and go. Nothing here reads events, so matches that a kernel has counted are handled as listed ones.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import Final

import numpy as np

from oxiseq.engine.expressions.totals import Total, add_all, total_of
from oxiseq.engine.output.arranging import Arrangement
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.output.deferred import Decided
from oxiseq.engine.output.due import DueReports
from oxiseq.engine.output.entries import Bundle, Entry, Instant, Key, Weighed
from oxiseq.engine.output.group_rows import GroupRows, Row
from oxiseq.engine.plan.summary import SummaryPlan
from oxiseq.engine.terms.dictionary import AnyIds, TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State, Stateful, spread, value
from oxiseq.engine.window import number_of
from oxiseq.grammar.algebra import OnChange, OnClose
from oxiseq.grammar.records import dataclass

_BEFORE_ALL: Final = -(1 << 62)
_AFTER_ALL: Final = 1 << 62


@dataclass(slots=True)
class _Group:
    """A group of the extent: how many matches it has, and its totals in the order of the measures."""

    matches: int
    totals: tuple[Total, ...]
    row: Row | None = None
    """Its row, once it has been made, until the group changes; None also where HAVING drops it."""
    known: bool = False


class Summaries(Stateful):
    """The groups of one query."""

    made_of = value("_window"), value("_decided", missing=_BEFORE_ALL), spread("due")

    def __init__(self, plan: SummaryPlan, terms: TermDictionary) -> None:
        self._plan = plan
        self._terms = terms
        self._groups: dict[Key, _Group] = {}
        self._leaving: list[tuple[int, int, Entry]] = []
        """Of a sliding window: a heap by start, then number."""
        self._entered = 0
        self._window = -1
        """Of the groups, if windows tumble."""
        self.due = DueReports(plan.report, plan.window, instantly=plan.instantly)
        """It is to be told of all instants of the query's streams."""
        self._rows: list[tuple[int, int, Row]] = []
        """Of each its time, and when it is decided."""
        self._decided = _BEFORE_ALL
        """The latest deadline of the sequences that have ended by now."""
        self._coming: deque[Decided] = deque()
        self.arrangement = Arrangement(plan, terms)
        """Of the rows of reports."""
        self._suppressor = self.arrangement.suppressor
        self._rows_made = GroupRows(self.arrangement.wide, terms)

    @property
    def records(self) -> int:
        """How many groups, matches and keys of SUPPRESS it keeps."""
        return len(self._groups) + len(self._leaving) + (0 if self._suppressor is None else len(self._suppressor))

    def take(
        self,
        instants: Iterable[Instant],
        until: int,
        start: int,
        decided: Sequence[Decided] = (),
        ended: tuple[int, int] | None = None,
    ) -> MatchBatch:
        """The rows of new matches, by the instant of their end, in order. `until`: the smallest clock that
        may still come; all matches that end before it are known. `decided`: where time decides matches, the ends that
        it has decided, in the same order. `ended`: of streams that have ended, how many instants there were, and the
        greatest time (µs) that one had come to."""
        self._coming.extend(decided)
        if ended is not None:
            self.due.end(ended[1])
        for instant in instants:
            self._reach(instant.clock, instant.time, start)
            self._at(instant, start)
        self._reach(until, until, start, over=True, ended=ended)
        self._decided_by(_AFTER_ALL)
        return self._batch()

    # --- moments --------------------------------------------------------------------------------------

    def _reach(
        self, clock: int, time: int, start: int, over: bool = False, ended: tuple[int, int] | None = None
    ) -> None:
        """What is due before `clock` and `time` is reported. `ended`: as of `take`."""
        window = self._plan.window
        counts = window is not None and window.events
        for report in self.due.due(clock, time, start, over=over):
            groups = self._groups
            if report.window < 0:
                self._enter(report.clock, start)
                groups = self._groups
            elif report.window != self._window:
                groups = {}
            at = self._decided_by(report.time)
            if isinstance(self._plan.report, OnClose):  # by then all is decided, or the end of the streams decides it
                at = report.time
            if counts and ended is not None and report.clock > ended[0]:  # the end has closed a window that is not full
                at = max(at, ended[1])
            self._report(report.time, at, self._rows_of(groups, groups, at, empty=True))

    def _enter(self, clock: int, start: int) -> None:
        """Matches outside of the extent at `clock` leave it."""
        window = self._plan.window
        if window is None:
            return
        if not window.sliding:
            number = number_of(window, clock, start)
            if number != self._window:
                self._groups, self._window = {}, number
            return
        while self._leaving and self._leaving[0][0] < clock - window.size:
            entry = heappop(self._leaving)[2]
            self._add(self._groups, entry, -1)

    def _at(self, instant: Instant, start: int) -> None:
        """The matches of one instant come into the extent."""
        plan = self._plan
        if plan.instantly:
            groups: dict[Key, _Group] = {}
            for entry in instant.entries:
                self._add(groups, entry, 1)
            at = instant.time if instant.at is None else instant.at
            self._report(instant.time, at, self._rows_of(groups, groups, at))
            return
        self._enter(instant.clock, start)
        touched = dict.fromkeys(entry.key for entry in instant.entries)
        changes = isinstance(plan.report, OnChange)
        at = self._decided_by(instant.time)
        before = Counter(self._shown(row) for row in self._rows_of(self._groups, touched, at)) if changes else Counter()
        sliding = plan.window is not None and plan.window.sliding
        for entry in instant.entries:
            self._add(self._groups, entry, 1)
            if sliding and isinstance(entry, Entry):
                self._entered += 1
                heappush(self._leaving, (entry.start, self._entered, entry))
        if changes:
            self._report(instant.time, at, self._less(self._rows_of(self._groups, touched, at), before))

    def _add(self, groups: dict[Key, _Group], entry: Entry | Bundle | Weighed, sign: int) -> None:
        group = groups.get(entry.key)
        if group is None:
            totals = tuple(total_of(m.aggregate, self._terms) for m in self._plan.measures)
            group = groups[entry.key] = _Group(0, totals)
        times, keys = sign * entry.times, len(self._plan.keys)
        group.matches += times
        group.known = False
        if isinstance(entry, Weighed):
            for total, more in zip(group.totals, entry.totals, strict=True):
                total.merge(more)
            return
        if isinstance(entry, Bundle):
            for total, pairs in zip(group.totals, entry.values, strict=True):
                add_all(total, pairs)
            return
        for measure, total in zip(self._plan.measures, group.totals, strict=True):
            total.add(0 if measure.column is None else entry.values[measure.column - keys], times)
        if not group.matches:
            del groups[entry.key]

    # --- rows -----------------------------------------------------------------------------------------

    def _decided_by(self, time: int) -> int:
        """When all is decided that ends by `time` (µs)."""
        while self._coming and self._coming[0].time <= time:
            self._decided = max(self._decided, self._coming.popleft().at)
        return max(time, self._decided)

    def _rows_of(self, groups: Mapping[Key, _Group], keys: Iterable[Key], at: int, *, empty: bool = False) -> list[Row]:
        """The rows of these groups, decided at `at`, each with what ORDER BY compares; those that HAVING drops, and
        groups without matches, have none. `empty`: without GROUP BY there is one all the same."""
        found = [(key, groups[key]) for key in keys if key in groups]
        if empty and not found and not self._plan.grouped:
            found = [((), _Group(0, tuple(total_of(m.aggregate, self._terms) for m in self._plan.measures)))]
        return [row for key, group in found if (row := self._row(key, group, at)) is not None]

    def _row(self, key: Key, group: _Group, at: int) -> Row | None:
        if not group.known:
            group.row = self._rows_made.row(key, group.totals, at)
            group.known = not self._rows_made.tell_when
        return group.row

    def _shown(self, row: Row) -> Row:
        """Without what only ORDER BY compares."""
        return row[: self.arrangement.shown]

    def _less(self, rows: Iterable[Row], others: Counter[Row]) -> Iterator[Row]:
        """The rows without as many of each as `others` has."""
        for row in rows:
            shown = self._shown(row)
            if others[shown]:
                others[shown] -= 1
            else:
                yield row

    def _report(self, time: int, at: int, rows: Iterable[Row]) -> None:
        """The rows of one report."""
        self._rows += [(time, at, row) for row in rows]

    def _batch(self) -> MatchBatch:
        rows, self._rows = self._rows, []
        values = np.array([row for _, _, row in rows], np.uint32).reshape(len(rows), len(self.arrangement.wide.names))
        time, at = np.array([(time, at) for time, at, _ in rows], np.int64).reshape(len(rows), 2).T
        return self.arrangement.of(time, values, at)

    # --- its saved state --------------------------------------------------------------------------------

    def held_ids(self) -> Iterator[AnyIds]:
        """The terms of groups, of matches that have not left, of keys of SUPPRESS."""
        if self._suppressor is not None:
            yield from self._suppressor.held_ids()
        for key, group in self._groups.items():
            row = group.row if group.known and group.row is not None else ()
            yield np.array([*key, *_held(group), *row], np.int64)
        for _, _, entry in self._leaving:
            yield np.array([*entry.key, *entry.values], np.int64)

    def save(self, terms: SavedTerms) -> State:
        """Its state between batches."""
        keys = len(self._plan.keys)
        totals = [total for group in self._groups.values() for total in group.totals]
        entries = [[*e.key, *e.values] for _, _, e in sorted(self._leaving)]
        return {
            "keys": terms.ids(np.array([*self._groups], np.int64).reshape(len(self._groups), keys)),
            "matches": [str(group.matches) for group in self._groups.values()],
            "totals": [total.save() for total in totals],
            "held": [len(total.held) for total in totals],
            "ids": terms.ids(np.array([i for total in totals for i in total.held], np.int64)),
            "leaving": terms.ids(np.array(entries, np.int64).reshape(len(entries), len(self._plan.written))),
            "starts": np.array([start for start, _, _ in sorted(self._leaving)], np.int64),
            "times": [str(e.times) for _, _, e in sorted(self._leaving)],
            "suppressed": None if self._suppressor is None else self._suppressor.save(terms),
            **super().save(terms),
        }

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Continue with a saved state."""
        held = np.split(terms.ids(state["ids"]), np.cumsum(np.array(state["held"], np.int64)))
        saved = zip(state["totals"], held, strict=False)
        self._groups = {}
        for key, matches in zip(terms.ids(state["keys"]).tolist(), state["matches"], strict=True):
            totals = tuple(total_of(m.aggregate, self._terms) for m in self._plan.measures)
            for total in totals:
                numbers, ids = next(saved)
                total.restore(ids.tolist(), numbers)
            self._groups[tuple(key)] = _Group(int(matches), totals)
        keys = len(self._plan.keys)
        entries = zip(state["starts"].tolist(), terms.ids(state["leaving"]).tolist(), state["times"], strict=True)
        self._leaving = [
            (start, number, Entry(start, tuple(ids[:keys]), tuple(ids[keys:]), int(times)))
            for number, (start, ids, times) in enumerate(entries)
        ]
        self._entered = len(self._leaving)
        if self._suppressor is not None:
            self._suppressor.restore(state["suppressed"], terms)
        super().restore(state, terms)


def _held(group: _Group) -> Iterator[int]:
    for total in group.totals:
        yield from total.held
