"""The rows that runs may still refer to: a window's worth of columns.

Row ids count up for ever; the store holds those from `base` on and forgets from the front.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.memory.pointers import Pointers
from oxiseq.engine.kernels.sequence.letter_rows import RowBlock
from oxiseq.engine.matching.enrich import KbAnswer
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State

_FIRST: Final = 16
"""Rows that there is room for to begin with."""


class KnownRows(Protocol):
    """Rows by id, and what the knowledge base has answered for them."""

    @property
    def times(self) -> tuple[NDArray[np.int64], int]:
        """As of RowStore."""

    def take(self, ids: NDArray[np.int64]) -> RowBlock:
        """As of RowStore."""

    def clocks(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """As of RowStore."""

    def answers(self, epoch: int) -> Mapping[str, KbAnswer]:
        """As of RowStore."""


class RowStore:
    """Rows by id. `base` is the first id still held, `end` the next one to be given."""

    def __init__(self, width: int) -> None:
        self.base = 0
        self.end = 0
        self._low = 0
        self._hold(RowBlock.allocate(rows=_FIRST, width=width))
        self.epochs: list[dict[str, KbAnswer]] = []
        self._forgotten_epochs = 0

    def reserve(self, count: int) -> int:
        """Room for so many rows at the end, to be written there (`pointers`); their first place in the arrays. Rows may
        move: views on them from before are void."""
        used = self.end - self.base
        before = len(self._block.letter)
        if self._low + used + count > before:
            size = before
            while size < 2 * (used + count):
                size *= 2
            block = self._block
            if size > before:
                self._hold(RowBlock.allocate(rows=size, width=block.stored.shape[1]))
            for target, source in zip(self._block, block, strict=True):
                target[:used] = source[self._low : self._low + used]
            self._low = 0
        self.end += count
        return self._low + used

    def _hold(self, block: RowBlock) -> None:
        self._block = block
        self.pointers = Pointers(block)
        """RowBlock's fields, for kernels."""

    @classmethod
    def of(cls, block: RowBlock) -> RowStore:
        """A store of these rows, whose ids count from 0."""
        if not len(block.letter):
            return cls(block.stored.shape[1])
        store = cls.__new__(cls)
        store.base, store.end, store._low = 0, len(block.letter), 0
        store.epochs, store._forgotten_epochs = [], 0
        store._hold(RowBlock(*map(np.ascontiguousarray, block)))
        return store

    @property
    def width(self) -> int:
        """How many terms of a row are stored."""
        return int(self._block.stored.shape[1])

    def widened(self, width: int) -> RowStore:
        """The same rows with room for so many terms each."""
        if width <= self.width:
            return self
        block = self.block
        stored = np.zeros((len(block.letter), width), np.uint32)
        stored[:, : self.width] = block.stored
        wide = RowStore.of(block._replace(stored=stored))
        wide.base, wide.end = self.base, self.end
        wide.epochs, wide._forgotten_epochs = self.epochs, self._forgotten_epochs
        return wide

    def append(self, block: RowBlock) -> None:
        """More rows, which get the next ids."""
        at, count = self.reserve(len(block.letter)), len(block.letter)
        for target, source in zip(self._block, block, strict=True):
            target[at : at + count] = source

    @property
    def offset(self) -> int:
        """A row's index in the arrays is its id plus this."""
        return self._low - self.base

    @property
    def times(self) -> tuple[NDArray[np.int64], int]:
        """When rows happened, and what their ids have to be shifted by to find them there."""
        return self._block.time, self.offset

    def clocks(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of the rows with these ids."""
        found: NDArray[np.int64] = self._block.clock[ids + self.offset]
        return found

    def take(self, ids: NDArray[np.int64]) -> RowBlock:
        """The rows with these ids, in that order."""
        at = ids - self.base + self._low
        return RowBlock(*[column[at] for column in self._block])

    def save(self, columns: Sequence[int], ids: NDArray[np.bool_], terms: SavedTerms) -> State:
        """The rows held, with these of the stored columns; `ids`: which of those are terms. The epochs' answers are the
        caller's."""
        block = self.block
        stored = block.stored[:, columns]
        terms.ids(stored[:, ids])
        rows = {name: getattr(block, name).copy() for name in block._fields}
        return {**rows, "stored": stored, "base": self.base, "forgotten": self._forgotten_epochs}

    def restore(
        self, state: State, epochs: list[dict[str, KbAnswer]], ids: NDArray[np.bool_], terms: KnownTerms
    ) -> None:
        """Continue with saved rows and the answers of their epochs; for a store without rows."""
        count = len(state["letter"])
        self.reserve(count)
        for name in self._block._fields:
            getattr(self._block, name)[:count] = state[name]
        stored = self._block.stored[:count]
        stored[:, ids] = terms.ids(stored[:, ids])
        self.base = int(state["base"])
        self.end = self.base + count
        self.epochs, self._forgotten_epochs = epochs, int(state["forgotten"])

    @property
    def block(self) -> RowBlock:
        """The rows held, as views."""
        held = slice(self._low, self._low + self.held)
        return RowBlock(*[column[held] for column in self._block])

    def forget(self, clock: int, oldest: int) -> None:
        """Drop leading rows whose clock lies before `clock`, and those with ids before `oldest`."""
        used = self.end - self.base
        if not used or (self._block.clock[self._low] >= clock and oldest <= self.base):
            return
        clocks = self._block.clock[self._low : self._low + used]
        drop = max(int(np.searchsorted(clocks, clock)), min(oldest, self.end) - self.base)
        if drop <= 0:
            return
        self.base += drop
        self._low += drop
        if self.base < self.end:
            self._drop_epochs(int(self._block.epoch[self._low]))

    def epoch(self, answers: dict[str, KbAnswer]) -> int:
        """The number under which these KB answers are kept while rows refer to them. Answers that are asked for when
        others have been already join those that still hold."""
        last = self.epochs[-1] if self.epochs else {}
        if not self.epochs or any(
            name in last and last[name].columns is not answer.columns for name, answer in answers.items()
        ):
            if self.base == self.end:  # no row refers to the earlier ones
                self._forgotten_epochs += len(self.epochs)
                self.epochs = []
            self.epochs.append({})
        self.epochs[-1].update(answers)
        return self._forgotten_epochs + len(self.epochs) - 1

    def answers(self, epoch: int) -> dict[str, KbAnswer]:
        """The KB answers of an epoch, by GPM."""
        return self.epochs[epoch - self._forgotten_epochs]

    @property
    def held_epochs(self) -> range:
        """The numbers of the epochs whose answers are kept."""
        return range(self._forgotten_epochs, self._forgotten_epochs + len(self.epochs))

    def _drop_epochs(self, oldest: int) -> None:
        gone = max(oldest - self._forgotten_epochs, 0)
        del self.epochs[:gone]
        self._forgotten_epochs += gone

    def held_ids(self) -> tuple[NDArray[np.uint32]]:
        """The terms of the rows held."""
        return (self._block.stored[self._low : self._low + self.held],)

    @property
    def bytes(self) -> int:
        """Of all columns, with room for more rows."""
        return self._block.bytes

    @property
    def held(self) -> int:
        """How many rows are held."""
        return self.end - self.base
