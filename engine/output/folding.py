"""The matches that end at one instant → bundles of groups, without listing them (engine/plan/folding.py).

In the flow: finals of an instant → frozen set → **bundles by key** → groups (summaries.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode, Variable

from oxiseq.engine.errors import LimitError
from oxiseq.engine.events.time import to_literal
from oxiseq.engine.expressions.totals import TOO_MANY
from oxiseq.engine.kernels.matches.records import PLACE_BITS
from oxiseq.engine.kernels.sequence.letter_rows import RowBlock
from oxiseq.engine.kernels.sequence.records import Memory
from oxiseq.engine.matches.frozen import FrozenMatches, sums_by
from oxiseq.engine.output.entries import Bundle, Instant, InstantNumbers, Key, Weighed
from oxiseq.engine.output.rows import KnownRows
from oxiseq.engine.plan.folding import Folding, OfEvents
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.terms.dictionary import TermDictionary

_ONE: Final = Literal("1", datatype=NamedNode("http://www.w3.org/2001/XMLSchema#integer"))
I64 = NDArray[np.int64]


class Folded(NamedTuple):
    """Of the matches that end at `time` those of one key."""

    time: int
    bundle: Bundle | Weighed


class _Outputs(NamedTuple):
    """The rows of a frozen set: the nodes that have one, and which row of the block each has."""

    nodes: NDArray[np.intp]
    row_of: NDArray[np.intp]
    block: RowBlock


class MatchFolder:
    """Folds for one query."""

    def __init__(self, plan: QueryPlan, folding: Folding, terms: TermDictionary) -> None:
        self._folding = folding
        self._letters = [letter.letter for letter in plan.letters]
        self._stored = {v: i for i, v in enumerate(plan.runner.stored)}
        self._terms = terms
        self._folded: list[Folded] = []

    def pick(self, S: Memory, rows: KnownRows) -> Memory:
        """The same set if one of its matches is emitted, for CONSUME BY; nodes refer to these `rows`. Raises
        LimitError."""
        found = FrozenMatches(S)
        if found.exceeds(0):
            nodes = np.flatnonzero(found.pos >= 0)
            ids, row_of = np.unique(found.pos[nodes] >> PLACE_BITS, return_inverse=True)
            outputs = _Outputs(nodes, row_of, rows.take(ids))
            time = int(outputs.block.time[-1])  # an output is newer than the prefix that it extends
            self._folded += [Folded(time, bundle) for bundle in self._bundles(found, outputs, time)]
        return S

    def take(self) -> list[Folded]:
        """The folds since the last call."""
        folded, self._folded = self._folded, []
        return folded

    def _bundles(self, found: FrozenMatches, outputs: _Outputs, time: int) -> Iterator[Bundle]:
        for key, left_out in self._keys(outputs, time):
            if self._folding.keys:
                found.leave_out(outputs.nodes[left_out])
            try:
                count = found.count
            except LimitError:
                if any(self._folding.measures):
                    raise
                count = TOO_MANY
            if count:
                yield Bundle(key, tuple(self._values(m, found, outputs, count) for m in self._folding.measures), count)

    def _keys(self, outputs: _Outputs, time: int) -> Iterator[tuple[Key, NDArray[np.bool_]]]:
        """Each combination of keys that matches may have, with the outputs that are in none of those matches; in the
        order of the events that have the keys, which does not depend on ids."""
        by_row = np.argsort(outputs.row_of, kind="stable")
        found: list[tuple[Key, NDArray[np.bool_]]] = [((), np.zeros(len(outputs.nodes), np.bool_))]
        for key in self._folding.keys:
            if key is None:
                end = self._terms.intern(to_literal(time))
                found = [((*ids, end), out) for ids, out in found]
                continue
            gpm, variable = key
            mine, values = self._of(gpm, variable, outputs)
            found = [
                ((*ids, value), out | (mine & (values != value)))
                for ids, out in found
                for value in dict.fromkeys(values[by_row][(mine & ~out)[by_row]].tolist())
            ]
        return iter(found)

    def _values(
        self, measure: OfEvents | None, found: FrozenMatches, outputs: _Outputs, count: int
    ) -> list[tuple[int, int]]:
        """How often each value is there."""
        if measure is None:
            return [(0, count)]
        mine, values = self._of(measure.gpm, measure.variable, outputs)
        pairs = sums_by(values[mine], found.times(outputs.nodes[mine]))
        if measure.single and (rest := count - sum(times for _, times in pairs)):
            pairs.append((0, rest))
        return pairs

    def _of(self, gpm: str, variable: Variable | None, outputs: _Outputs) -> tuple[NDArray[np.bool_], I64]:
        """Which outputs are events of a GPM, and the value of each; without a variable 1."""
        block = outputs.block
        has = np.array([gpm in letter for letter in self._letters])[block.letter]
        if variable is None:
            values: NDArray[Any] = np.full(len(block.letter), self._terms.intern(_ONE), np.int64)
        else:
            values = block.stored[:, self._stored[variable]].astype(np.int64)
        return has[outputs.row_of], values[outputs.row_of]


def instants_of_folded(folded: Sequence[Folded], numbers: InstantNumbers | None) -> Iterator[Instant]:
    """In order of their ends; those of one end together. `numbers`: where clocks are not times."""
    by_time: dict[int, list[Bundle | Weighed]] = {}
    for time, bundle in folded:
        by_time.setdefault(time, []).append(bundle)
    for time in sorted(by_time):
        clock = time if numbers is None else int(numbers.of(np.array([time]))[0])
        yield Instant(time, clock, by_time[time])
