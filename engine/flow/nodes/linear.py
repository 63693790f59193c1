"""Operators that take row by row and keep nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.delta import Buffer, Delta, Ids
from oxiseq.engine.flow.nodes.node import Node
from oxiseq.engine.terms.dictionary import TermDictionary


class Constant(Node):
    def __init__(self, form: p.Constant, terms: TermDictionary) -> None:
        super().__init__(form.width)
        ids = [[0 if t is None else terms.constant(t) for t in row] for row in form.rows]
        self._rows = np.array(ids, np.uint32).reshape(len(form.rows), form.width)
        self._first: int | None = None

    def begin(self, tick: int) -> bool:
        self._first = tick
        return True

    def step(self) -> None:
        if self._first is not None:
            count = len(self._rows)
            self.out.put(Delta(np.full(count, self._first), np.ones(count, np.int64), self._rows))
            self._first = None


class Pick(Node):
    def __init__(self, form: p.Pick, child: Buffer) -> None:
        super().__init__(len(form.columns), (child,))
        self._first = [places[0] if places else -1 for places in form.columns]
        self._fill = [(i, places[1:]) for i, places in enumerate(form.columns) if len(places) > 1]
        self._plain = -1 not in self._first

    def step(self) -> None:
        delta = self.inputs[0].delta
        self.out.put(Delta(delta.at, delta.weight, self._picked(delta.rows)))

    def _picked(self, rows: Ids) -> Ids:
        if self._plain:
            found = np.ascontiguousarray(rows[:, self._first])
        else:
            found = np.zeros((len(rows), len(self._first)), np.uint32)
            for i, place in enumerate(self._first):
                if place >= 0:
                    found[:, i] = rows[:, place]
        for i, others in self._fill:
            for place in others:
                found[:, i] = np.where(found[:, i] == 0, rows[:, place], found[:, i])
        return found


class Negate(Node):
    def __init__(self, child: Buffer) -> None:
        super().__init__(child.width, (child,))

    def step(self) -> None:
        delta = self.inputs[0].delta
        self.out.put(Delta(delta.at, -delta.weight, delta.rows))


class Union(Node):
    def __init__(self, children: Sequence[Buffer]) -> None:
        super().__init__(children[0].width, tuple(children))

    def step(self) -> None:
        self.out.put(Delta.concat([child.delta for child in self.inputs], self.out.width))
