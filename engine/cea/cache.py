"""The automaton's steps computed so far, in a table (state, symbol) → move that the kernel reads.

A step depends on those bits of a symbol only that the state's letters ask for, so it is made once for all symbols
that agree there; the kernel finds it again by itself (kernels/cea/symbols.py).

The table is bounded: when it is full it is emptied, and only the states that partial matches are in stay. It
exceeds the bound only as far as one event needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.cea.events import kind_of
from oxiseq.engine.cea.plan import CeaPlan, as_words
from oxiseq.engine.cea.subsets import NOWHERE, Move, State, Subsets
from oxiseq.engine.errors import LimitError
from oxiseq.engine.kernels.cea import records as k
from oxiseq.engine.kernels.cea.symbols import enter_steps, enter_symbols
from oxiseq.engine.kernels.memory.growing import longer
from oxiseq.engine.kernels.memory.pointers import Pointers, call

MOST_MOVES = 1 << 24
"""What one event may need: states of partial matches, times symbols."""
_BEGINNING = 16


class StepCache:
    """`arrays` are what the kernel takes; `most`: how many moves they are to hold."""

    arrays: k.Cache

    def __init__(self, plan: CeaPlan, subsets: Subsets, sizes: NDArray[np.int64], most: int) -> None:
        self._subsets = subsets
        self._words = plan.runner.words
        self._most = most
        self._sizes = sizes
        self.queries = np.zeros(1, k.QUERY)
        self.queries["back"] = kind_of(plan.query)[1]
        self.rebuilds = 0
        self._empty([NOWHERE])

    def more_queries(self, count: int) -> None:
        """There are so many."""
        self.queries = longer(self.queries, count)
        self.arrays = self.arrays._replace(queries=self.queries)

    @property
    def states(self) -> int:
        return len(self._states)

    @property
    def symbols(self) -> int:
        return int(self._sizes[k.SYMBOLS])

    @property
    def steps(self) -> int:
        """How many have been made."""
        return self._steps

    def add_step(self, state: int, symbol: int) -> bool:
        """Make a step of the automaton; False if there is no room for where it leads."""
        arrays = self.arrays
        bits = arrays.symbols[symbol] & arrays.relevant[state]
        letters = self._subsets.letters(int.from_bytes(bits.astype("<u8").tobytes(), "little"))
        move = self._subsets.step(self._states[state], letters) if state else self._subsets.begin(letters)
        marked, other = self._number(move.marked), self._number(move.other)
        if marked is None or other is None:
            return False
        if self._steps == len(arrays.step_key):
            self._more_steps()
            arrays = self.arrays
        step = self._steps
        self._steps += 1
        arrays.step_key[step, 0], arrays.step_key[step, 1:] = state, bits
        arrays.step_move[step] = (marked, move.place, other, _flags(move))
        call(enter_steps, Pointers(arrays), step, self._steps)
        return True

    def _more_steps(self) -> None:
        self.arrays = self.arrays.grow("steps")
        call(enter_steps, Pointers(self.arrays), 0, self._steps)

    def _number(self, state: State | None) -> int | None:
        """The number of a state, a new one if need be; None if there is no room."""
        if state is None:
            return k.NONE
        number = self._numbers.get(state)
        if number is None and len(self._states) < len(self.arrays.restless):
            number = self._numbers[state] = len(self._states)
            self._states.append(state)
            self._describe(number, state)
        return number

    def grow(self, symbols: bool, beyond: bool) -> bool:
        """Twice the room for symbols, else for states; False if that is more than the bound, unless `beyond` it.

        LimitError if even that is exceeded.
        """
        rows, columns = len(self.arrays.restless), len(self.arrays.symbols)
        if 2 * rows * columns > (MOST_MOVES if beyond else self._most):
            if beyond:
                raise LimitError(2 * rows * columns, MOST_MOVES, "steps of the automaton that one event takes")
            return False
        if symbols:
            moves = np.zeros((rows, 2 * columns), k.MOVE)
            moves[:, :columns] = self.arrays.moves.reshape(rows, columns)
            self.arrays = self.arrays.grow("symbols")._replace(moves=moves.reshape(-1))
            self._sizes[k.STRIDE] = 2 * columns
            call(enter_symbols, Pointers(self.arrays))
        else:
            self.arrays = self.arrays.grow("states")
        return True

    def number_of(self, state: State) -> int:
        """The number of a state."""
        while (number := self._number(state)) is None:
            self.grow(symbols=False, beyond=True)
        return number

    def state(self, number: int) -> State:
        """The state of a number, which is not 0."""
        return self._states[number]

    def save(self, numbers: Iterable[int]) -> list[list[str | int]]:
        """States as they are saved."""
        return [[hex(s.at_once), hex(s.later), s.strict] for s in map(self.state, numbers)]

    def restore(self, saved: Iterable[Any]) -> None:
        """Have only these states, numbered from 1 on."""
        self._empty([NOWHERE, *(State(int(at_once, 16), int(later, 16), strict) for at_once, later, strict in saved)])

    def put_symbols(self, symbols: NDArray[np.uint64]) -> None:
        """Have these symbols, by number, and the steps of all states on them; there are none yet."""
        while len(self.arrays.symbols) < len(symbols):
            self.grow(symbols=True, beyond=True)
        self.arrays.symbols[: len(symbols)] = symbols
        self._sizes[k.SYMBOLS] = len(symbols)
        call(enter_symbols, Pointers(self.arrays))
        for state in range(self.states):
            _, first = np.unique(symbols & self.arrays.relevant[state], axis=0, return_index=True)
            for symbol in first.tolist():
                while not self.add_step(state, symbol):
                    self.grow(symbols=False, beyond=True)

    def rebuild(self, numbers: NDArray[np.int32]) -> None:
        """Keep only the states with a new number: `numbers[state]`, from 1 on without gaps, -1 for the others."""
        kept: dict[int, State] = {int(n): self._states[old] for old, n in enumerate(numbers) if old and n >= 0}
        self.rebuilds += 1
        self._empty([NOWHERE, *(kept[n] for n in sorted(kept))])

    def _empty(self, states: list[State]) -> None:
        """Arrays without any step; `states[0]` is a placeholder for the state before a run."""
        self._states = states
        self._numbers = {state: n for n, state in enumerate(states) if n}
        self._steps = 0
        self._sizes[k.SYMBOLS] = 0
        rows = _power(max(2 * len(states), min(_BEGINNING, isqrt(self._most))))
        self._sizes[k.STRIDE] = columns = max(1, min(_BEGINNING, self._most // rows))
        words = self._words
        arrays = k.Cache.allocate(queries=0, states=rows, symbols=columns, words=words, steps=_BEGINNING, key=1 + words)
        self.arrays = arrays._replace(queries=self.queries, sizes=self._sizes)
        for number, state in enumerate(states):
            self._describe(number, state if number else None)

    def _describe(self, number: int, state: State | None) -> None:
        self.arrays.restless[number] = state is not None and state.restless
        self.arrays.relevant[number] = as_words(self._subsets.relevant(state), self._words)


def _power(least: int) -> int:
    return 1 << max(1, (least - 1).bit_length())


def _flags(move: Move) -> int:
    return (
        k.KNOWN
        | (k.MARKED_ENDS if move.marked_ends else 0)
        | (k.OTHER_ENDS if move.other_ends else 0)
        | (k.OTHER_BEGINS if move.silent else 0)
    )
