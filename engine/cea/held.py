"""Which variables hold the positions of complex events.

Usually the automaton's step decides it: all letters that it may have read there are held by the same variables. Where
they are not, the match is read again, for which the events' symbols are kept as long as a run may refer to them.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.cea.plan import CeaPlan, as_words, words_of
from oxiseq.engine.cea.positions import bits
from oxiseq.engine.cea.subsets import AMBIGUOUS, FIRST_MASK, Subsets
from oxiseq.engine.kernels.cea import held as kernels
from oxiseq.engine.kernels.memory.pointers import Pointers, PointerTables, call
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State, Stateful, unsaved

_NO_HISTORY: Final = 0, -1


class Holders:
    """`masks[place]`, u64[words of variables]: the variables that hold an event at that place of a run."""

    def __init__(self, plan: CeaPlan, subsets: Subsets) -> None:
        words = words_of(len(plan.runner.variables))
        self.masks = np.zeros((FIRST_MASK + len(subsets.masks), words), np.uint64)
        for n, mask in enumerate(subsets.masks):
            self.masks[FIRST_MASK + n] = as_words(mask, words)
        self.silent = not all(plan.runner.masks)
        """Whether some events of a run are not in D."""
        self.history = _History(plan, words) if plan.runner.ambiguous else None

    def append(self, symbol: NDArray[np.uint64], partition: NDArray[np.int64], count: int, partitions: int) -> None:
        """So many events come in, the first of these, of so many partitions."""
        if self.history is not None:
            table, low = self.room(count, partitions)
            call(kernels.append, table, symbol, partition, count, low)

    def room(self, count: int, partitions: int) -> tuple[Pointers[kernels.Letters] | int, int]:
        """Where so many events of so many partitions come in: the history, their place there; −1: none is kept. The
        caller enters them."""
        return _NO_HISTORY if self.history is None else self.history.room(count, partitions)

    def forget(self, oldest: int) -> None:
        """No run refers to an earlier position."""
        if self.history is not None:
            self.history.forget(oldest)

    def begin_partitions(self, fresh: NDArray[np.int64]) -> None:
        """The partitions of these numbers are others from now on."""
        if self.history is not None:
            self.history.begin_partitions(fresh)

    def held(
        self,
        places: NDArray[np.int64],
        positions: NDArray[np.int64],
        offsets: NDArray[np.int64],
        start: NDArray[np.int64],
        end: NDArray[np.int64],
    ) -> NDArray[np.uint64]:
        """u64[positions, words]: for complex events as in FoundEvents, with the place of each position."""
        held = self.masks[places]
        if self.history is not None and len(ambiguous := np.flatnonzero(places == AMBIGUOUS)):
            owners = np.searchsorted(offsets, ambiguous, "right") - 1
            self.history.resolve(kernels.Matches(start, end, positions, offsets, held), np.unique(owners))
        return held


class _History(Stateful):
    """The events that runs may refer to: their symbols and, in their partitions, the positions before."""

    made_of = unsaved("_letters"), unsaved("_scratch")

    def __init__(self, plan: CeaPlan, words: int) -> None:
        sets, automaton = plan.runner, plan.runner.positions
        count = len(automaton.letters)
        kinds = np.zeros((count, 3), np.uint8)
        for column, members in enumerate((sets.kept, automaton.first, automaton.last)):
            kinds[list(bits(members)), column] = 1
        letters = kernels.Letters.allocate(events=0, words=sets.words, partitions=1)
        self._letters = letters._replace(
            atom=np.array(sets.atom_of, np.int64),
            mask=np.array([as_words(mask, words) for mask in sets.masks]),
            kinds=kinds,
            at_once=_matrix(automaton.at_once),
            later=_matrix(automaton.later),
            sizes=np.array([0, not all(sets.masks)], np.int64),
        )
        self._tables = PointerTables()
        self._count = 0
        self._scratch = kernels.Scratch.allocate(events=64, letters=count)

    def room(self, count: int, partitions: int) -> tuple[Pointers[kernels.Letters] | int, int]:
        """As of Holders."""
        low, high = self._count, self._count + count
        if partitions > len(self._letters.last):
            self._letters = self._letters.grow("partitions", partitions)
        if high > len(self._letters.before):
            self._letters = self._letters.grow("events", max(high, 2 * len(self._letters.before)))
        self._count = high
        return self._tables.of(self._letters), low

    def forget(self, oldest: int) -> None:
        """Moves what remains to the front, once that is less than half."""
        letters = self._letters
        dead = oldest - int(letters.sizes[kernels.OLDEST])
        if 2 * dead > self._count:
            letters.sizes[kernels.OLDEST] = oldest
            left = max(self._count - dead, 0)
            for array in (letters.symbol, letters.before):
                array[:left] = array[self._count - left : self._count].copy()
            self._count = left

    def begin_partitions(self, fresh: NDArray[np.int64]) -> None:
        last = self._letters.last
        last[fresh[fresh < len(last)]] = -1

    def save(self, _terms: SavedTerms) -> State:
        letters, count = self._letters, self._count
        oldest = int(letters.sizes[kernels.OLDEST])
        return {
            "symbol": letters.symbol[:count],
            "before": letters.before[:count],
            "oldest": oldest,
            "last": letters.last,
        }

    def restore(self, state: State, _terms: KnownTerms) -> None:
        symbol, before, last = (state[name].copy() for name in ("symbol", "before", "last"))
        self._letters = self._letters._replace(symbol=symbol, before=before, last=last)
        self._letters.sizes[kernels.OLDEST] = int(state["oldest"])
        self._count = len(before)

    def resolve(self, found: kernels.Matches, matches: NDArray[np.int64]) -> None:
        """Write `found.held` of some matches."""
        letters, into = self._tables.of(self._letters), Pointers(found)
        done = 0
        while True:
            done = int(call(kernels.resolve, letters, self._tables.of(self._scratch), into, matches, done))
            if done == len(matches):
                return
            self._scratch = self._scratch.grow("events")


def _matrix(follow: tuple[int, ...]) -> NDArray[np.uint8]:
    matrix = np.zeros((len(follow), len(follow)), np.uint8)
    for n, members in enumerate(follow):
        matrix[n, list(bits(members))] = 1
    return matrix
