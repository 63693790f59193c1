"""ORDER BY ... LIMIT and SAMPLE on the compact set: the matches that are emitted, without listing the others.

In the flow: finals of an instant → **the chosen ones** → enumeration → answers, which puts them in order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.errors import LimitError
from oxiseq.engine.expressions.amounts import Added, added_up
from oxiseq.engine.kernels.matches.records import PLACE_BITS
from oxiseq.engine.kernels.sequence.letter_rows import RowBlock
from oxiseq.engine.kernels.sequence.records import Memory
from oxiseq.engine.matches.frozen import FrozenMatches
from oxiseq.engine.matches.memory import put_matches
from oxiseq.engine.matches.paging import Pager
from oxiseq.engine.matches.sampling import sample
from oxiseq.engine.output.rows import KnownRows
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.plan.ranking import LISTED, MOST_LISTED, Amount, Ranking, RankKey, RankOf, Summand, TimeOf
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.order import order_key

Column = NDArray[np.float64]


class MatchPicker:
    """Picks for one query."""

    def __init__(self, plan: QueryPlan, ranking: Ranking, terms: TermDictionary) -> None:
        self._ranking = ranking
        self._letters = [letter.letter for letter in plan.letters]
        self._stored = {v: i for i, v in enumerate(plan.runner.stored)}
        self._terms = terms
        self._counts: list[int] = []
        self._pager = None
        if ranking.page is not None:
            consumes = plan.query.consumption is not None
            self._pager = Pager(ranking.page, consumes=consumes, whole=ranking.listed is not None)

    def take_counts(self) -> Sequence[int]:
        """Of how many matches samples of a window's matches have been drawn since the last call, end by end."""
        counts, self._counts = self._counts, []
        return counts

    @property
    def paged(self) -> int:
        """How many matches there are of which a page is picked."""
        return 0 if self._pager is None else self._pager.count

    def pick(self, S: Memory, rows: KnownRows) -> Memory:
        """Memory whose finals stand for the chosen matches; nodes refer to these `rows`. Raises LimitError."""
        found = FrozenMatches(S)
        if self._pager is not None:
            return self._pager.pick(S, self._end_of(S, rows))
        wanted = self._ranking.wanted
        if self._ranking.sample is not None and self._ranking.window is not None and found.exceeds(0):
            self._counts.append(found.count)
        if not found.exceeds(wanted):
            return S
        if self._ranking.sample is not None:
            numbers = sample(found.count, wanted, f"{self._ranking.seed} {self._end(found, rows)}")
            return put_matches(S, [found.at(i) for i in numbers])
        values = self._values(found, rows)
        if values is not None:
            return put_matches(S, list(found.best(values, wanted)))
        if found.exceeds(MOST_LISTED):
            raise LimitError(found.count, MOST_LISTED, LISTED)
        return S

    @staticmethod
    def _end(found: FrozenMatches, rows: KnownRows) -> int:
        """When its matches end: an output is newer than what it extends."""
        return int(rows.take(np.array([int(found.pos.max()) >> PLACE_BITS])).time[0])

    @staticmethod
    def _end_of(S: Memory, rows: KnownRows) -> int:
        """When the matches of the finals end."""
        node = S.nodes[S.finals[0, 0]]
        row = int((S.nodes[node["leaf"]] if node["leaf"] >= 0 else node)["pos"]) >> PLACE_BITS
        return int(rows.take(np.array([row])).time[0])

    def _values(self, found: FrozenMatches, rows: KnownRows) -> Column | None:
        """What each row adds to the keys: f64[nodes, keys]; None where that is no number that can be added."""
        outputs = np.flatnonzero(found.pos >= 0)
        ids, row_of = np.unique(found.pos[outputs] >> PLACE_BITS, return_inverse=True)
        block = rows.take(ids)
        values = np.zeros((len(found.pos), max(len(self._ranking.keys), 1)))
        for i, key in enumerate(self._ranking.keys):
            sums = self._amounts(key.summands, block) if _adds(key) else self._single(key.summands, block)
            if sums is None:
                return None
            column = sums[row_of]
            if any(isinstance(each, TimeOf) and each.gpm is None for each in key.summands):
                column = np.where(found.begins[outputs], column, 0.0)
            values[outputs, i] = -column if key.descending else column
        return values

    def _single(self, summands: Sequence[Summand], block: RowBlock) -> Column:
        """What rows add where one of each match does; 0 is less than all."""
        sums = np.zeros(len(block.letter))
        for each in summands:
            if isinstance(each, RankOf):
                ids = block.stored[:, self._stored[each.variable]]
                sums += np.where(self._has(each.gpm, block), self._ranks(ids), 0.0)
            elif isinstance(each, TimeOf):
                ages = (block.time - block.time[0] + 1).astype(np.float64)
                sums += each.sign * (ages if each.gpm is None else np.where(self._has(each.gpm, block), ages, 0.0))
        return sums

    def _ranks(self, ids: NDArray[np.uint32]) -> Column:
        """The ranks of terms in the order of terms, equal ones alike; 0: unbound."""
        distinct, which = np.unique(ids, return_inverse=True)
        keys = [order_key(self._terms.term(i) if i else None) for i in distinct.tolist()]
        places = {key: place for place, key in enumerate(sorted(set(keys)), 0 if 0 in distinct else 1)}
        return np.array([places[key] for key in keys], np.float64)[which]

    def _amounts(self, amounts: Sequence[Summand], block: RowBlock) -> Column | None:
        """What rows add where numbers are summed; None where that cannot be."""
        parts = []
        for each in amounts:
            assert isinstance(each, Amount)
            mine = np.flatnonzero(self._has(each.gpm, block))
            ids = None if each.variable is None else block.stored[mine, self._stored[each.variable]]
            parts.append(Added(mine, ids, each.factor))
        return added_up(parts, len(block.letter), self._terms)

    def _has(self, gpm: str, block: RowBlock) -> NDArray[np.bool_]:
        """Which rows are of the GPM."""
        return np.array([gpm in letter for letter in self._letters])[block.letter]


def _adds(key: RankKey) -> bool:
    return any(isinstance(each, Amount) for each in key.summands)
