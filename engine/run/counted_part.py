"""What a part of the instants has counted, for each of the queries that have one finder.

    counts, apart by starts and by queries of a family ─ **each query's own**, or its rows, made for all at once

A query's numbers are those of its thresholds (a family), of matches that fit into its sliding window. Rows of groups of
one form are made together for those that asked for them the last time: for each alone it would take as long as for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

import numpy as np

from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.plan.summary import SummaryPlan
from oxiseq.engine.sequence.counts import Case, Counts, lengths_of
from oxiseq.engine.sequence.states import Value
from oxiseq.grammar.records import dataclass

if TYPE_CHECKING:
    from oxiseq.engine.output.counted_rows import CountedRows


@dataclass(slots=True, eq=False)
class CountedPart:
    """`found` in a part, apart by `keys` of edges; `times`: the ids of times of ends as terms, as far as a query has
    needed them."""

    found: Sequence[Counts]
    keys: Sequence[Sequence[Value]]
    times: dict[int, int] = field(default_factory=dict)
    _of: dict[Case, list[Counts]] = field(default_factory=dict)

    def of(self, case: Case) -> list[Counts]:
        """What one query has."""
        if case not in self._of:
            self._of[case] = [
                counts.take(np.flatnonzero(lengths_of(counts, self.keys) <= case.size), case.member)
                for counts in self.found
            ]
        return self._of[case]


@dataclass(slots=True)
class _Form:
    """Of rows: who asked for them, and what they are, if there are not too few or numbers too large."""

    part: CountedPart | None = None
    asked: dict[Case, None] = field(default_factory=dict)
    rows: dict[Case, MatchBatch] | None = None


class JointRows:
    """The rows of the queries of one finder."""

    def __init__(self) -> None:
        self._forms: dict[SummaryPlan, _Form] = {}
        self._of: dict[int, tuple[CountedRows, _Form]] = {}
        """By the identity of who makes rows, which stays alive by that."""

    def rows(self, part: CountedPart, maker: CountedRows, case: Case) -> MatchBatch | None:
        """Those of one query; None where they are to be made one by one. Queries whose `maker` is of one form get what
        is made for all of them."""
        form = self._form(maker)
        if form.part is not part:
            cases = dict.fromkeys((*form.asked, case))
            form.part, form.asked, form.rows = part, {}, self._made(part, maker, cases)
        elif form.rows is not None and case not in form.rows:
            more = self._made(part, maker, {case: None})
            form.rows = None if more is None else form.rows | more
        form.asked[case] = None
        return None if form.rows is None else form.rows[case]

    def forget(self) -> None:
        """All have their rows."""
        for form in self._forms.values():
            form.part = form.rows = None

    def _form(self, maker: CountedRows) -> _Form:
        if id(maker) not in self._of:
            form = self._forms.setdefault(replace(maker.plan, window=None), _Form())
            self._of[id(maker)] = maker, form
        return self._of[id(maker)][1]

    def _made(self, part: CountedPart, maker: CountedRows, cases: dict[Case, None]) -> dict[Case, MatchBatch] | None:
        made = maker.rows(part.found, [*cases], part.times)
        return None if made is None else dict(zip(cases, made, strict=True))
