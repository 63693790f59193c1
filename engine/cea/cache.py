"""The steps of the automaton made so far, in a table (state, symbol) → move that the kernel reads.

The table is bounded: when it is full it is emptied, and only the states that partial matches are in stay. It
exceeds the bound only as far as one event needs.
"""

from __future__ import annotations

from math import isqrt

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.cea.plan import CeaPlan
from oxiseq.engine.cea.subsets import NOWHERE, Move, State, Subsets
from oxiseq.engine.errors import LimitError
from oxiseq.engine.kernels.cea import records as k
from oxiseq.engine.kernels.cea.symbols import enter_symbols
from oxiseq.engine.kernels.memory.pointers import Pointers, call

MOST_MOVES = 1 << 24
"""What one event may need: states of partial matches, times symbols."""
_BEGINNING = 16


class StepCache:
    """`arrays` are what the kernel takes; `most`: how many moves they are to hold."""

    def __init__(self, plan: CeaPlan, subsets: Subsets, sizes: NDArray[np.int64], most: int) -> None:
        self._subsets = subsets
        self._words = plan.words
        self._most = most
        self._sizes = sizes
        self.rebuilds = 0
        self.arrays = self._empty([NOWHERE])

    @property
    def states(self) -> int:
        return len(self._states)

    @property
    def symbols(self) -> int:
        return len(self._letters)

    def add_symbol(self, bits: NDArray[np.uint64]) -> bool:
        """Number the symbol of an event; False if there is no room."""
        number = len(self._letters)
        if number == self._stride:
            return False
        self._letters.append(self._subsets.letters(int.from_bytes(bits.astype("<u8").tobytes(), "little")))
        self.arrays.symbols[number] = bits
        call(enter_symbols, Pointers(self.arrays), number, number + 1)
        return True

    def add_move(self, state: int, symbol: int) -> bool:
        """Make a step of the automaton; False if there is no room for where it leads."""
        letters = self._letters[symbol]
        move = self._subsets.step(self._states[state], letters) if state else self._subsets.begin(letters)
        marked, other = self._number(move.marked), self._number(move.other)
        if marked is None or other is None:
            return False
        self.arrays.moves[state * self._stride + symbol] = (marked, move.place, other, _flags(move))
        return True

    def _number(self, state: State | None) -> int | None:
        """The number of a state, a new one if need be; None if there is no room."""
        if state is None:
            return k.NONE
        number = self._numbers.get(state)
        if number is None and len(self._states) < len(self.arrays.restless):
            number = self._numbers[state] = len(self._states)
            self._states.append(state)
            self.arrays.restless[number] = state.restless
        return number

    def grow(self, symbols: bool, beyond: bool) -> bool:
        """Twice the room for symbols, else for states; False if that is more than the bound, unless `beyond` it.

        LimitError if even that is exceeded.
        """
        rows, columns = len(self.arrays.restless), self._stride
        if 2 * rows * columns > (MOST_MOVES if beyond else self._most):
            if beyond:
                raise LimitError(2 * rows * columns, MOST_MOVES, "steps of the automaton that one event takes")
            return False
        old = self.arrays
        rows, columns = (rows, 2 * columns) if symbols else (2 * rows, columns)
        self.arrays = self._allocate(rows, columns)
        held = len(old.restless)
        moves = self.arrays.moves.reshape(rows, columns)
        moves[:held, : len(old.symbols)] = old.moves.reshape(held, len(old.symbols))
        self.arrays.restless[:held] = old.restless
        self.arrays.seated[:held] = old.seated
        self.arrays.symbols[: len(old.symbols)] = old.symbols
        call(enter_symbols, Pointers(self.arrays), 0, len(self._letters))
        return True

    def rebuild(self, numbers: NDArray[np.int32]) -> None:
        """Keep only the states with a new number: `numbers[state]`, from 1 on without gaps, -1 for the others."""
        kept: dict[int, State] = {int(n): self._states[old] for old, n in enumerate(numbers) if old and n >= 0}
        self.rebuilds += 1
        self.arrays = self._empty([NOWHERE, *(kept[n] for n in sorted(kept))])

    def _empty(self, states: list[State]) -> k.Cache:
        """Arrays without any step; `states[0]` is a stand-in for what is before a run."""
        self._states = states
        self._numbers = {state: n for n, state in enumerate(states) if n}
        self._letters: list[int] = []
        rows = _power(max(2 * len(states), min(_BEGINNING, isqrt(self._most))))
        arrays = self._allocate(rows, max(1, min(_BEGINNING, self._most // rows)))
        arrays.restless[: len(states)] = [state.restless for state in states]
        return arrays

    def _allocate(self, rows: int, columns: int) -> k.Cache:
        self._stride = columns
        self._sizes[k.STRIDE] = columns
        return k.Cache(
            sizes=self._sizes,
            moves=np.zeros(rows * columns, k.MOVE),
            restless=np.zeros(rows, np.int32),
            seat=np.zeros(rows, np.int32),
            seated=np.zeros(rows, np.int64),
            symbols=np.zeros((columns, self._words), np.uint64),
            table=np.full(_power(2 * columns), -1, np.int32),
        )


def _power(least: int) -> int:
    return 1 << max(1, (least - 1).bit_length())


def _flags(move: Move) -> int:
    return (
        k.KNOWN
        | (k.MARKED_ENDS if move.marked_ends else 0)
        | (k.OTHER_ENDS if move.other_ends else 0)
        | (k.OTHER_BEGINS if move.silent else 0)
    )
