"""Nodes stepped by one kernel (kernels/flow/driving.py), as far as they are kernels: one event passes through
in some microseconds, in which Python could not step two of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Final

import numpy as np

from oxiseq.engine.flow.delta import KEPT_ROOM
from oxiseq.engine.flow.operators.node import Node
from oxiseq.engine.flow.operators.sources import Fed
from oxiseq.engine.kernels.compiling.calling import MOST_ARGUMENTS, entry_of
from oxiseq.engine.kernels.flow.driving import (
    ALL,
    ALL_DONE,
    ANSWER,
    ASKED,
    FILLED,
    LARGEST,
    SCALARS,
    STEP,
    Steps,
    drive,
)
from oxiseq.engine.kernels.memory.pointers import Addressed, Bound, Pointers
from oxiseq.engine.terms.dictionary import TermDictionary

_TIDIED: Final = 64
"""Steps after which nodes return unused memory."""


class Driver:
    """Steps nodes, which come after their inputs; sources have been filled before."""

    def __init__(self, nodes: Sequence[Node], terms: TermDictionary) -> None:
        self._nodes, self._terms = nodes, terms
        self._known = -1
        """Which ids the dictionary had freed when the table was made."""
        self._scalars = np.zeros(SCALARS, np.int64)
        self._scalars[FILLED] = ALL
        self._steps = np.zeros(len(nodes), STEP)
        readers = _readers(nodes)
        ends = [0, *accumulate(map(len, readers))]
        self._steps["first"], self._steps["last"] = ends[:-1], ends[1:]
        sources = [place for place, node in enumerate(nodes) if isinstance(node, Fed)]
        self.table = Pointers(
            Steps(
                self._scalars,
                self._steps,
                np.array([*chain(*readers)], np.int64),
                np.array(sources, np.int64),
                due=np.zeros(len(nodes), np.uint8),
                filled=np.zeros(len(nodes), np.int64),
            )
        )
        """What `drive` takes."""
        self._drive = Bound(drive, self.table)
        self._until_tidy = _TIDIED

    def step(self) -> None:
        """Clear what nodes hold of the last batch, and step each that has something to take in. Raises LimitError."""
        self.ready()
        while (place := self._drive()) != ALL_DONE:
            self.go_on(place)

    def ready(self) -> None:
        """Before a batch."""
        self._until_tidy -= 1
        if not self._until_tidy or self._scalars.item(LARGEST) > KEPT_ROOM:
            self._tidy()
        if self._known != self._terms.generation:
            self._make_table()

    @property
    def largest(self) -> int:
        """The most rows that any operator has had room for of late."""
        return self._scalars.item(LARGEST)

    def go_on(self, place: int) -> None:
        """What `drive` has left to Python at an operator. Raises LimitError."""
        answer, node = self._scalars.item(ANSWER), self._nodes[place]
        if answer == ASKED:
            node.step()
        else:
            node.go_on(answer)

    def _make_table(self) -> None:
        self._known = self._terms.generation
        for node, step in zip(self._nodes, self._steps, strict=True):
            step["out"] = node.out.address
            called = node.call()
            if called is not None:
                count = len(called.arguments)
                step["kernel"], step["arguments"] = entry_of(called.kernel, count), count
                for name, each in zip("abcdef"[:MOST_ARGUMENTS], called.arguments, strict=False):
                    step[name] = each.address if isinstance(each, Addressed) else each

    def _tidy(self) -> None:
        """Releases unused memory; the last batch's rows go."""
        self._until_tidy, self._scalars[LARGEST] = _TIDIED, 0
        for node in self._nodes:
            node.tidy()
            if not isinstance(node, Fed):
                node.out.clear()


def _readers(nodes: Sequence[Node]) -> list[list[int]]:
    """By place the places of its readers."""
    places = {node.out.address: place for place, node in enumerate(nodes)}
    found: list[list[int]] = [[] for _ in nodes]
    for place, node in enumerate(nodes):
        for address in dict.fromkeys(buffer.address for buffer in node.inputs):
            found[places[address]].append(place)
    return found
