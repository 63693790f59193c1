"""States of EP-SPARQL queries that are alike and have come to be the same, but for the rows of each: put together.

In the flow: saved states of families (family.py) → **one** → a family at work (intervals.py). Rows that do not
depend on constants are the same for all queries of a family. So two families may become one when these rows are equal
in both; the rows of each query are taken over. Rows without a time are left out: it is rebuilt from the knowledge base.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from oxiseq.engine.events.faults import Faults
from oxiseq.engine.flow.delta import I64, Ids
from oxiseq.engine.flow.epsparql.standing import is_timed
from oxiseq.engine.order.arrivals import Arrivals
from oxiseq.engine.run.family import Family
from oxiseq.engine.run.resets import Resets
from oxiseq.engine.terms.saved import State


class Kept:
    """The timed rows of running plans. parts: their saved states; for the last one `numbered` gives by operator
    the column of its rows that says whose they are."""

    def __init__(self, parts: Sequence[State], numbered: Mapping[int, int]) -> None:
        self._parts = [{**part, "nodes": [*map(_timed, part["nodes"])]} for part in parts]
        self._numbered = numbered

    @property
    def _own(self) -> Iterator[tuple[int, int, State]]:
        """Operators whose rows are some query's, and the column."""
        nodes = self._parts[-1]["nodes"]
        return ((place, column, nodes[place]) for place, column in self._numbered.items())

    @cached_property
    def common(self) -> bytes:
        """A digest of the common part; empty for nothing."""
        found = []
        for number, part in enumerate(self._parts):
            own: Collection[int] = self._numbered if part is self._parts[-1] else ()
            nodes = (node for place, node in enumerate(part["nodes"]) if place not in own)
            found += [(number, place, _canonical(node)) for place, node in enumerate(nodes) if _has_rows(node)]
        return hashlib.blake2b(repr(found).encode(), digest_size=16).digest() if found else b""

    @property
    def is_nothing(self) -> bool:
        """Whether nothing with a time is kept."""
        return not self.common and not any(_has_rows(node) for _, _, node in self._own)

    def of(self, number: int) -> bytes:
        """A digest of a query's own rows; empty for none."""
        found = []
        for place, column, node in self._own:
            mine = node["rows"][:, column] == number
            rows = np.delete(node["rows"][mine], column, axis=1)
            found.append((place, _in_order(rows, node["weight"][mine])))
        some = any(rows for _, (rows, _) in found)
        return hashlib.blake2b(repr(found).encode(), digest_size=16).digest() if some else b""

    def with_others(self, others: Sequence[tuple[Kept, Mapping[int, int]]]) -> list[State]:
        """Its states with the queries' own rows in others, for `Flow.restore`. Of each: by number of a query that is
        taken over the number that it has here."""
        last = self._parts[-1]
        nodes = [*last["nodes"]]
        for place, column, node in self._own:
            every = [(node["rows"], node["weight"])]
            every += [_renumbered(other._parts[-1]["nodes"][place], column, numbers) for other, numbers in others]
            rows, weights = zip(*every, strict=True)
            nodes[place] = {"rows": np.concatenate(rows), "weight": np.concatenate(weights)}
        return [*self._parts[:-1], {**last, "nodes": nodes}]


class MayUnite(Protocol):
    """A run of a family."""

    resets: Resets
    faults: Faults

    @property
    def family(self) -> Family:
        """The queries that are in its state."""

    @property
    def order(self) -> Arrivals:
        """What puts its events in order."""

    @property
    def is_steady(self) -> bool:
        """Whether its state depends on events, and on the knowledge base's present content, alone."""

    @property
    def kept(self) -> Kept | None:
        """Its rows that have a time; None for none."""


Run = TypeVar("Run", bound=MayUnite)
Candidate: TypeAlias = tuple[Run, Kept | None]
"""A run, and its rows."""


def in_groups(runs: Sequence[Run]) -> Iterator[list[Candidate[Run]]]:
    """Several runs each that may become one, the largest first, if the same events wait for them."""
    states: dict[Hashable, list[Candidate[Run]]] = {}
    for run in runs:
        if run.is_steady:
            kept = run.kept
            state = run.order.times, run.resets, run.faults, b"" if kept is None else kept.common
            states.setdefault(state, []).append((run, kept))
    for same in states.values():
        for group in _by_table(same):
            if len(group) > 1:
                yield sorted(group, key=lambda each: (each[1] is None, -len(each[0].family)))


def _by_table(candidates: Sequence[Candidate[Run]]) -> Collection[list[Candidate[Run]]]:
    """Those over the same table; those that keep nothing may come to any that fits."""
    tables: dict[Hashable, list[Candidate[Run]]] = {}
    for run, kept in candidates:
        if kept is not None and run.family.slots:
            tables.setdefault((run.family.slots, run.family.fixed), []).append((run, kept))
    for run, kept in candidates:
        if kept is None:
            fitting = next((each for each in tables.values() if run.family.fits(each[0][0].family)), None)
            (tables.setdefault(None, []) if fitting is None else fitting).append((run, kept))
    return tables.values()


def _timed(node: State) -> State:
    """Of an operator that keeps rows, those that have a time; another keeps its rows."""
    if node.keys() != {"rows", "weight"}:
        return node
    chosen = is_timed(node["rows"])
    return {"rows": node["rows"][chosen], "weight": node["weight"][chosen]}


def _renumbered(node: State, column: int, numbers: Mapping[int, int]) -> tuple[Ids, I64]:
    """The rows of some queries, each behind another number."""
    chosen = np.isin(node["rows"][:, column], [*numbers])
    rows = node["rows"][chosen]
    rows[:, column] = [numbers[number] for number in rows[:, column].tolist()]
    return rows, node["weight"][chosen]


def _has_rows(state: Any) -> bool:
    """Whether there is anything in a saved state but counts."""
    match state:
        case dict():
            return any(map(_has_rows, state.values()))
        case list():
            return any(map(_has_rows, state))
    return isinstance(state, np.ndarray) and len(state) > 0


def _canonical(state: Any) -> Any:
    """The same for states that hold the same, in whatever order, at whatever tick."""
    match state:
        case {"rows": rows, "weight": weight, **more} if not more:
            return _in_order(rows, weight)
        case dict():
            return [(name, _canonical(each)) for name, each in state.items() if name != "tick"]
        case list():
            return [*map(_canonical, state)]
    return state.tobytes() if isinstance(state, np.ndarray) else state


def _in_order(rows: Ids, weight: I64) -> tuple[bytes, bytes]:
    order = np.lexsort(rows.T[::-1]) if len(rows) else np.zeros(0, np.int64)
    return rows[order].tobytes(), weight[order].astype(np.int64).tobytes()
