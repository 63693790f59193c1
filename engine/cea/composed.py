"""A run of a compiled CEQL query whose complex events are only counted and summed: it keeps no prefix, only what each
event of the window does to them (engine/matches/composed.py).

In the flow: events → tuples → symbols, values → **run** → weights of ends → rows (output/end_totals.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.cea.cache import StepCache
from oxiseq.engine.cea.events import FEW, MarkedEvents, Placed
from oxiseq.engine.cea.memory import Capacities, sizes_of
from oxiseq.engine.cea.plan import CeaPlan
from oxiseq.engine.cea.positions import bits
from oxiseq.engine.cea.subsets import State as Letters
from oxiseq.engine.cea.subsets import Subsets, variables_at
from oxiseq.engine.kernels.cea import records as k
from oxiseq.engine.kernels.cea.symbols import number_events, unknown_state
from oxiseq.engine.kernels.matches import composed as c
from oxiseq.engine.kernels.matches.records import DONE
from oxiseq.engine.kernels.memory.growing import longer
from oxiseq.engine.kernels.memory.pointers import Pointers, call
from oxiseq.engine.matches.composed import MOST_STATES, Arcs, ComposedWindows, Ended, Rules
from oxiseq.engine.matches.events import MeasuredEvents
from oxiseq.engine.matches.measures import MOST_MEASURES, WEIGHED
from oxiseq.engine.omissions import InstantError
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State, Stateful, spread, unsaved
from oxiseq.grammar.ceql.texts import render_predicate
from oxiseq.grammar.ceql_algebra import AttributeWindow, aggregates

_MOST_STEPS: Final = 2_000
_MOST_ATOMS: Final = 14
"""Symbols are not more than two to that."""
I64 = NDArray[np.int64]


def not_composed(plan: CeaPlan) -> str | None:
    """Why what ends at an event cannot be counted by composed windows; None: it can. Of a plan with totals."""
    if isinstance(plan.query.window, AttributeWindow) and (plan.query.selection is None or plan.runner.strict):
        return "a window of an attribute may reach back"
    because = not_weighed(plan)
    if because is None and plan.runner.positions.short:
        return "few are live, since each event of a match directly follows the one before"
    if because is None and automaton_of(plan) is None:
        return f"the automaton has more than {MOST_STATES} states"
    return because


def not_weighed(plan: CeaPlan) -> str | None:
    """Why weights do not say what is counted of what ends at an event; None: they do. Of a plan with totals."""
    query = plan.query
    assert query.totals is not None
    found = aggregates(query.totals)
    if query.selection is not None and not plan.runner.strict:
        return f"{query.selection.strategy.value} chooses among those of an event"
    if plan.runner.ambiguous and any(aggregate.arg is not None for aggregate in found):
        return "several variables may hold an event"
    for aggregate in found:
        if aggregate.distinct or aggregate.name not in WEIGHED:
            return f"{render_predicate(aggregate)} needs each value"
    if len({aggregate.arg for aggregate in found} - {None}) > MOST_MEASURES:
        return f"they are over more than {MOST_MEASURES} things"
    return None


class Automaton(NamedTuple):
    """How many states the determinised automaton has, with that before a match, and whether an event that no letter
    reads may change something."""

    states: int
    restless: bool


def automaton_of(plan: CeaPlan) -> Automaton | None:
    """The determinised automaton of a plan; None: it has too many states."""
    if len(plan.letters) > _MOST_ATOMS:
        return None
    subsets = Subsets(plan.runner)
    found: dict[Letters | None, None] = {None: None}
    steps = 0
    for state in _growing(found):
        atoms = [*bits(subsets.relevant(state))]
        steps += 1 << len(atoms)
        if steps > _MOST_STEPS:
            return None
        for chosen in range(1 << len(atoms)):
            letters = subsets.letters(sum(1 << atom for i, atom in enumerate(atoms) if chosen >> i & 1))
            move = subsets.begin(letters) if state is None else subsets.step(state, letters)
            found |= dict.fromkeys(each for each in (move.marked, move.other) if each is not None)
        if len(found) > MOST_STATES:
            return None
    return Automaton(len(found), any(state.restless for state in found if state is not None))


def _growing(found: dict[Letters | None, None]) -> Iterator[Letters | None]:
    """What is in it, and what comes to be in it meanwhile."""
    at = 0
    while at < len(found):
        yield next(islice(found, at, None))
        at += 1


class ComposedRun(Stateful):
    """The running state of one query. Between batches it needs no event any more: `oldest` is the next position."""

    made_of = spread("_windows"), unsaved("_cache.arrays")

    behind = 0
    """No window of an attribute reaches back."""

    def __init__(
        self,
        plan: CeaPlan,
        capacities: Capacities | None,
        measured: MeasuredEvents,
        least: int,
    ) -> None:
        """`least`: fewer complex events are not written."""
        found = automaton_of(plan)
        assert found is not None
        capacities = capacities or Capacities()
        subsets = Subsets(plan.runner)
        self._sizes = sizes_of(plan, capacities, picks=False)
        self._cache = StepCache(plan, subsets, self._sizes, capacities.moves)
        self._rules = rules = Rules(
            _KINDS[int(self._sizes[k.KIND])], int(self._sizes[k.SIZE]), consume=int(self._sizes[k.CONSUME])
        )
        rules.settings[c.LEAST] = least
        held = measured.held(variables_at(plan.runner))
        self._windows = ComposedWindows(rules, measured.measures, held, found.states, capacities.parts, capacities.out)
        self._known = np.zeros(0, np.int32)
        """In how many states the rules say what an event of each symbol does."""
        self._work = np.array([0, 0, 1, found.restless], np.int64)
        self._placed = Placed(plan.query, plan.runner.words)
        self._by_time = self._sizes[k.KIND] == k.BY_TIME
        self._back = int(self._sizes[k.SIZE]) if self._by_time else 0
        self._numbers, few = np.zeros(FEW, np.int32), self._placed.few
        self._few = Pointers(c.Steps(self._numbers, few.partition, few.clock, few.cut, *_NO_INSTANTS))
        self.begin_partitions, self.partitions_in_use = self._windows.begin_partitions, self._windows.partitions_in_use
        self.collect = self._windows.collect

    def feed(self, events: MarkedEvents, ids: I64) -> list[Ended]:
        """Take in a batch of events whose attributes have these ids, i64[n, attributes]; what ends in it: the caller
        reads its least and largest values before the next call, which may forget them."""
        columns = self._windows.columns(ids)
        E, count = self._placed.place(events), len(events)
        if self._by_time and count:
            self._windows.tau = events.time.item(-1) - self._back
        if count <= FEW:
            np.subtract(self._placed.few.clock, self._back, out=self._placed.few.cut)
            self._number(E, self._numbers)
            return self._windows.feed(self._few, count, columns)
        numbers, clock = np.empty(count, np.int32), E.arrays.clock
        self._number(E, numbers)
        steps = Pointers(c.Steps(numbers, E.arrays.partition, clock, clock - self._back, *_NO_INSTANTS))
        return self._windows.feed(steps, count, columns)

    def _number(self, E: Pointers[k.Events], numbers: NDArray[np.int32]) -> None:
        """The numbers of the symbols of events; the rules say what each does."""
        work, cache = self._work, self._cache
        work[0] = 0
        while True:
            need = call(number_events, Pointers(cache.arrays), E, numbers, self._known, work)
            if need == DONE:
                return
            if need == k.NEED_SYMBOL:
                cache.grow(symbols=True, beyond=True)
            else:
                self._describe(work.item(1))

    def _describe(self, symbol: int) -> None:
        """The rules say what an event of a symbol does in all states."""
        cache = self._cache
        while (state := int(call(unknown_state, Pointers(cache.arrays), symbol, cache.states))) >= 0:
            if not cache.add_step(state, symbol):
                cache.grow(symbols=False, beyond=True)
        stride, keep, arcs = int(self._sizes[k.STRIDE]), -1, list[tuple[int, int, int]]()
        for state in range(cache.states):
            move = cache.arrays.moves[state * stride + symbol]
            stays, mine = _does(state, *move.tolist())
            keep = keep if stays else keep & ~(1 << state)
            arcs += mine
        self._rules.put(symbol, keep, arcs)
        if symbol >= len(self._known):
            self._known = longer(self._known, max(2 * len(self._known), symbol + 1))
        self._known[symbol] = self._work[2] = self._rules.settings[c.STATES] = cache.states

    over: Final = False
    """Nothing stops it."""

    def take_omitted(self) -> list[InstantError]:
        """None: nothing is listed."""
        return []

    @property
    def idles(self) -> bool:
        """As of CeaRun."""
        windows = self._windows
        if windows.records:
            windows.settle(np.zeros(windows.partitions, np.uint8))
        return not windows.records

    def pass_by(self, count: int, last: int) -> None:
        """As of CeaRun."""
        self._windows.pass_by(count)
        if self._by_time:
            self._windows.tau = last - self._back

    @property
    def position(self) -> int:
        """How many events came in."""
        return self._windows.position

    @property
    def oldest(self) -> int:
        return self.position

    @property
    def state(self) -> dict[str, int]:
        """Numbers of records."""
        cache = self._cache
        sizes = {"states": cache.states, "symbols": cache.symbols, "steps": cache.steps}
        return {**self._windows.state, **sizes, "bytes": self.bytes}

    @property
    def records(self) -> int:
        """Events of windows, and partitions in which something has begun."""
        return self._windows.records

    def forget(self) -> None:
        """As of CeaRun."""
        self._windows.begin(self.position)

    def save(self, terms: SavedTerms) -> State:
        """Its state between batches."""
        return {
            **super().save(terms),
            "symbols": self._cache.arrays.symbols[: self._cache.symbols],
            "states": self._cache.save(range(1, self._cache.states)),
        }

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Continue from a saved state; for a run that has not seen any event. Raises KeyError, ValueError for one of
        another layout."""
        super().restore(state, terms)
        self._cache.restore(state["states"])
        self._cache.put_symbols(state["symbols"])
        for symbol in range(self._cache.symbols):
            self._describe(symbol)


_KINDS: Final = {k.UNBOUNDED: c.UNBOUNDED, k.BY_TIME: c.BY_CLOCK, k.BY_EVENTS: c.BY_COUNT}
_NO_INSTANTS: Final = np.zeros(0, np.int64), np.zeros(0, np.int64)


def _does(state: int, marked: int, place: int, other: int, flags: int) -> tuple[bool, Arcs]:
    """Whether those of a state stay in it at an event, and what the event does to them, with it (at a place) and
    without it: a record of records.MOVE."""
    arcs = []
    if place and marked != k.NONE:
        arcs.append((state, marked, place))
    if flags & k.MARKED_ENDS:
        arcs.append((state, c.END, place))
    moves = flags & k.OTHER_BEGINS if state == 0 else other != state
    if moves and other != k.NONE:
        arcs.append((state, other, 0))
    if flags & k.OTHER_ENDS:
        arcs.append((state, c.END, 0))
    return state == 0 or other == state, arcs
