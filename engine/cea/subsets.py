"""The position automaton made deterministic, one step at a time (CORE, section 5).

Each (interval, D) is read in one way only: an event is either in D or not, and a state is *all* that the letters
read so far leave open. So no complex event is found twice, whatever the formula.
"""

from __future__ import annotations

from functools import reduce
from typing import Final, NamedTuple

from oxiseq.engine.cea.plan import DeterminisedSets
from oxiseq.engine.cea.positions import bits
from oxiseq.grammar.records import dataclass

BEFORE, AMID, AFTER = range(3)
"""With STRICT: D is still empty; the last event is in D; D is complete. Without it always BEFORE."""

SILENT, AMBIGUOUS, FIRST_MASK = range(3)
"""The place of an event in a run: it begins a run and is not in D; it is held by these or those variables; from
FIRST_MASK on, the number of the set of variables that hold it."""


class State(NamedTuple):
    """Which letters (sets, see positions.py) may be the very next event only, and which may be any later one."""

    at_once: int
    later: int
    strict: int = BEFORE

    @property
    def restless(self) -> bool:
        """Whether an event that no letter reads changes it."""
        return self.at_once != 0 or self.strict == AMID


NOWHERE: Final = State(0, 0)


@dataclass(frozen=True, slots=True)
class Move:
    """What an event does to a state, when it is in D (place > 0) and when it is not.

    `marked`, `other`: the states that it leads to, None if nothing can follow. `marked_ends`, `other_ends`: a
    complex event ends here. `silent`: some letter reads the event without taking it into D.
    """

    place: int
    marked: State | None
    marked_ends: bool
    other: State | None
    other_ends: bool
    silent: bool


class Subsets:
    """The deterministic automaton of a plan; immutable. Sets of letters are integers."""

    def __init__(self, plan: DeterminisedSets) -> None:
        self._automaton = plan.positions
        self._kept = plan.kept
        self._masks = plan.masks
        self._atom_of = plan.atom_of
        self._strict = plan.strict
        self.masks = masks_of(plan)
        """Sets of variables by place - FIRST_MASK."""
        self._places = {mask: FIRST_MASK + n for n, mask in enumerate(self.masks)}
        self._keeps_history = plan.ambiguous
        self._tail = self._silent_tail()
        self._readers: dict[int, int] = {}
        for n, atom in enumerate(plan.atom_of):
            self._readers[atom] = self._readers.get(atom, 0) | 1 << n

    def letters(self, symbol: int) -> int:
        """The letters that an event of a symbol may be."""
        return reduce(int.__or__, (self._readers.get(atom, 0) for atom in bits(symbol)), 0)

    def relevant(self, state: State | None) -> int:
        """The atoms that its moves depend on; None: those that begin a run."""
        return self._atoms(self._automaton.first if state is None else state.at_once | state.later)

    def _atoms(self, letters: int) -> int:
        return reduce(int.__or__, (1 << self._atom_of[n] for n in bits(letters)), 0)

    def begin(self, letters: int) -> Move:
        """What the first event of a run does; unlike later ones it is always read."""
        return self._move(letters & self._automaton.first, 0, BEFORE)

    def step(self, state: State, letters: int) -> Move:
        """What the next event of a run does."""
        return self._move(letters & (state.at_once | state.later), state.later, state.strict)

    def _move(self, read: int, waiting: int, strict: int) -> Move:
        marked = read & self._kept if strict != AFTER else 0
        silent = read & ~self._kept
        after = AFTER if strict == AMID else strict
        last = self._automaton.last
        return Move(
            place=self._place(marked) if marked else 0,
            marked=self._reached(marked, 0, AMID if self._strict else BEFORE),
            marked_ends=bool(marked & last),
            other=self._reached(silent, waiting, after),
            other_ends=bool(silent & last),
            silent=bool(silent),
        )

    def _reached(self, read: int, waiting: int, strict: int) -> State | None:
        at_once, later = 0, waiting
        for n in bits(read):
            at_once |= self._automaton.at_once[n]
            later |= self._automaton.later[n]
        if strict == AFTER:
            at_once, later = at_once & self._tail, later & self._tail
        at_once &= ~later
        return State(at_once, later, strict) if at_once or later else None

    def _place(self, marked: int) -> int:
        masks = {self._masks[n] for n in bits(marked)}
        if len(masks) > 1 and self._keeps_history:
            return AMBIGUOUS
        return min(self._places[mask] for mask in masks)

    def _silent_tail(self) -> int:
        """The silent letters after which silent letters alone can end the match."""
        silent = [n for n, mask in enumerate(self._masks) if not mask]
        tail = sum(1 << n for n in silent if self._automaton.last >> n & 1)
        while True:
            more = tail
            for n in silent:
                if (self._automaton.at_once[n] | self._automaton.later[n]) & tail:
                    more |= 1 << n
            if more == tail:
                return tail
            tail = more


def masks_of(plan: DeterminisedSets) -> tuple[int, ...]:
    """The sets of variables that hold events, by place from FIRST_MASK on."""
    return tuple(dict.fromkeys(mask for mask in plan.masks if mask))


def variables_at(plan: DeterminisedSets) -> list[list[str]]:
    """By place the variables that hold an event there."""
    masks = [0] * FIRST_MASK + [*masks_of(plan)]
    return [[name for i, name in enumerate(plan.variables) if mask >> i & 1] for mask in masks]
