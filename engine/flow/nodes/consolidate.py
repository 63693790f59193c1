"""Equal rows of a tick as one (operators.md, 3.4): rows that come and go within it left out, or each once."""

from __future__ import annotations

from typing import Final

from oxiseq.engine.errors import LimitError
from oxiseq.engine.flow.delta import Buffer
from oxiseq.engine.flow.nodes.node import Call, KernelNode
from oxiseq.engine.kernels.flow import counting as k
from oxiseq.engine.kernels.memory.pointers import Replaceable, call
from oxiseq.engine.terms.saved import unsaved

_MOST_NUMBERED: Final = 1 << k.NUMBER_BITS
_NUMBERED: Final = {"": 0, "TIMED": k.TIMED, "EVERY": k.EVERY}


class Consolidate(KernelNode):
    """It keeps nothing between ticks. slots: of its hash table, to begin with; a power of two. once: of rows that only
    come, each once; numbered: which with a number, in two columns behind them (plan.Once)."""

    made_of = (unsaved("_memory.arrays"),)

    def __init__(self, child: Buffer, slots: int = 16, *, once: bool = False, numbered: str = "") -> None:
        super().__init__(child.width + 2 * bool(numbered), (child,))
        memory = k.Cancelling.allocate(found=slots // 2)
        memory.places[[k.ONCE, k.NUMBERED]] = once, _NUMBERED[numbered]
        self._memory = Replaceable(memory)

    def call(self) -> Call:
        return Call(k.consolidate, (self._memory, self.inputs[0], self.out))

    def provide(self, answer: int) -> None:
        """Slots. Raises LimitError where rows cannot be numbered any more."""
        memory, places = self._memory, self._memory.arrays.places
        rows = int(places[k.SLOTS_WANTED]) // 2
        if places[k.NUMBERED] and rows > _MOST_NUMBERED:
            raise LimitError(_MOST_NUMBERED + 1, _MOST_NUMBERED, "rows of one instant, where answers use triples up")
        memory.set(memory.arrays.grow("found", rows))
        call(k.fill_found, memory, self.inputs[0], self.out)
