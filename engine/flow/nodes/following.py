"""Pairs in order of time (plan.Follow)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.delta import Buffer
from oxiseq.engine.flow.nodes.node import Call, KernelNode
from oxiseq.engine.flow.nodes.timeline import Timeline
from oxiseq.engine.kernels.flow import following as k
from oxiseq.engine.kernels.memory.pointers import Pointers
from oxiseq.engine.terms.saved import part

_CHOICES: Final[Mapping[str, int]] = {"ALL": k.ALL, "EARLIEST": k.EARLIEST, "LATEST": k.LATEST}


class Follow(KernelNode):
    """room: rows of each side to begin with."""

    made_of = part("_left"), part("_right")

    def __init__(self, form: p.Follow, left: Buffer, right: Buffer, room: int = 64) -> None:
        super().__init__(left.width + right.width, (left, right))
        scalars = np.zeros(k.SCALARS, np.int64)
        scalars[k.CHOICE], scalars[k.MEETING] = _CHOICES[form.choice], form.meeting
        loose = (np.array(side.loose, np.int64) for side in (form.left, form.right))
        self._memory = Pointers(k.Following(scalars, *loose))
        self._left = Timeline(left, form.left.time, form.left.key, room)
        self._right = Timeline(right, form.right.time, form.right.key, room)

    def call(self) -> Call:
        return Call(k.follow, (self._memory, self._left, self._right, *self.inputs, self.out))

    def provide(self, answer: int) -> None:
        self._left.make_room()
        self._right.make_room()

    @property
    def records(self) -> int:
        return len(self._left) + len(self._right)
