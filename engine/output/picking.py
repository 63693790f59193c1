"""ORDER BY ... LIMIT, SAMPLE and pages on the compact set: the matches that are emitted, without listing the others,
for both runners (semantics.md 2.6b).

In the flow: finals of an end → **the chosen ones** → enumeration. Those of CEQL come in their order; matches of SPAseq
are put in order behind it, by what they show (ranked.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.errors import LimitError
from oxiseq.engine.expressions.amounts import Added, added_up
from oxiseq.engine.matches.events import MatchEvents, ReadEvents
from oxiseq.engine.matches.frozen import FrozenMatches, Places
from oxiseq.engine.matches.memory import M, put_matches
from oxiseq.engine.matches.paging import Pager
from oxiseq.engine.matches.ranking import Amount, Ranking, RankKey, RankOf, Summand, TimeOf
from oxiseq.engine.matches.sampling import sample
from oxiseq.engine.plan.ranking import LISTED, MOST_LISTED
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.order import order_key

MOST_ORDERED: Final = 1_000_000
"""Matches of one end that are put in order."""
Column = NDArray[np.float64]
InOrder: TypeAlias = Callable[[list[Places]], list[Places]]
"""Some matches of one end, compared one by one."""


class MatchPicker:
    """Picks for one query. `consumes`: of a page, for CONSUME BY a match of another instant is needed."""

    def __init__(self, ranking: Ranking, terms: TermDictionary, *, consumes: bool = False) -> None:
        self._ranking, self._terms = ranking, terms
        self._counts: list[int] = []
        self._pager = None
        if ranking.page is not None:
            self._pager = Pager(ranking.page, consumes=consumes, whole=ranking.listed is not None)

    def take_counts(self) -> Sequence[int]:
        """Of how many matches samples of a window's matches have been drawn since the last call, end by end."""
        counts, self._counts = self._counts, []
        return counts

    @property
    def paged(self) -> int:
        """How many matches there are of which a page is picked."""
        return 0 if self._pager is None else self._pager.count

    def pick(self, S: M, time: int, read: ReadEvents, in_order: InOrder | None = None) -> M:
        """Memory whose finals stand for the chosen matches of those that end at `time` (µs), in their order where
        `in_order` compares some. Raises LimitError."""
        if self._pager is not None:
            return self._pager.pick(S, time)
        found, ranking = FrozenMatches(S), self._ranking
        if not found.exceeds(0):
            return S
        ordered = in_order if ranking.order_by else None
        if ranking.sample is not None:
            if ranking.window is not None:
                self._counts.append(found.count)
            if ordered is None and not found.exceeds(ranking.sample.count):
                return S
            picked = [found.at(i) for i in sample(found.count, ranking.sample.count, f"{ranking.seed} {time}")]
            return put_matches(S, picked if ordered is None else ordered(picked))
        wanted = MOST_ORDERED if ranking.last is None else ranking.last
        if ordered is None and not found.exceeds(wanted):
            return S
        values = None if ranking.listed else self._values(found, read)
        if values is not None:
            if ranking.last is None or wanted > MOST_ORDERED:
                _bounded(found, MOST_ORDERED, "complex events of one end for ORDER BY (write a smaller LIMIT)")
            picked = list(found.best(values, wanted))
        elif ordered is None:
            _bounded(found, MOST_LISTED, LISTED)
            return S
        else:
            _bounded(found, MOST_LISTED, "complex events of one end that ORDER BY compares one by one")
            picked = ordered([found.at(i) for i in range(found.count)])
        return put_matches(S, picked if ordered is None else picked[ranking.offset : ranking.last])

    def _values(self, found: FrozenMatches, read: ReadEvents) -> Column | None:
        """What each event adds to the keys: f64[nodes, keys]; None where that is no number that can be added."""
        outputs = np.flatnonzero(found.pos >= 0)
        events = read(found.pos[outputs])
        values = np.zeros((len(found.pos), max(len(self._ranking.keys), 1)))
        for i, key in enumerate(self._ranking.keys):
            sums = self._amounts(key.summands, events) if _adds(key) else self._single(key.summands, events)
            if sums is None:
                return None
            column = sums[events.of]
            if any(isinstance(each, TimeOf) and each.gpm is None for each in key.summands):
                column = np.where(found.begins[outputs], column, 0.0)
            values[outputs, i] = -column if key.descending else column
        return values

    def _single(self, summands: Sequence[Summand], events: MatchEvents) -> Column:
        """What events add where one of each match does; 0 is less than all."""
        sums = np.zeros(len(events.age))
        for each in summands:
            if isinstance(each, RankOf):
                mine = np.flatnonzero(events.has(each.gpm))
                sums[mine] += self._ranks(events.ids(each.variable, mine))
            elif isinstance(each, TimeOf):
                sums += each.sign * (
                    events.age if each.gpm is None else np.where(events.has(each.gpm), events.age, 0.0)
                )
        return sums

    def _ranks(self, ids: NDArray[np.int64]) -> Column:
        """The ranks of terms in the order of terms, equal ones alike; 0: unbound."""
        distinct, which = np.unique(ids, return_inverse=True)
        keys = [order_key(self._terms.term(i) if i else None) for i in distinct.tolist()]
        places = {key: place for place, key in enumerate(sorted(set(keys)), 0 if 0 in distinct else 1)}
        return np.array([places[key] for key in keys], np.float64)[which]

    def _amounts(self, amounts: Sequence[Summand], events: MatchEvents) -> Column | None:
        """What events add where numbers are summed; None where that cannot be."""
        parts = []
        for each in amounts:
            assert isinstance(each, Amount)
            mine = np.flatnonzero(events.has(each.gpm))
            parts.append(Added(mine, None if each.variable is None else events.ids(each.variable, mine), each.factor))
        return added_up(parts, len(events.age), self._terms)


def _bounded(found: FrozenMatches, most: int, what: str) -> None:
    if found.exceeds(most):
        raise LimitError(found.count, most, what)


def _adds(key: RankKey) -> bool:
    return any(isinstance(each, Amount) for each in key.summands)
