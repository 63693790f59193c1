"""A query answered at every instant of its streams, over windows that hold the events of the last stretch of time or of
events: all instants of a batch at once.

In the flow: complete events in order → operators (engine/flow) → **full rows to emit**, by instant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.flow.delta import I64
from oxiseq.engine.flow.knowledge import Knowledge
from oxiseq.engine.flow.plan import draws_in_turn
from oxiseq.engine.flow.standing import Standing
from oxiseq.engine.kb_in_time import KbInTime
from oxiseq.engine.rsp.full_rows import NO_ROWS, FullRows, full_rows
from oxiseq.engine.rsp.plan import RspPlan
from oxiseq.engine.terms.blanks import KbBlanks
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import Stateful, part
from oxiseq.engine.window import Window
from oxiseq.grammar.rsp_algebra import RangeWindow

_NO_IDS: Final = np.zeros(0, np.uint32)


def is_steady(plan: RspPlan) -> bool:
    """Whether a query can be answered so."""
    each_alone = plan.events or not plan.rhythm.every_instant or draws_in_turn(plan.flow.plan)
    return not each_alone and all(
        len(c.window.operators) == 1 and isinstance(c.window.operators[0], RangeWindow) and not c.window.floored
        for c in plan.contents
    )


class SteadyAnswers(Stateful):
    """All that changes for such a query. known: its answers of the KB, if it has run before."""

    made_of = (part("_standing"),)

    def __init__(
        self, plan: RspPlan, terms: TermDictionary, kb: KbInTime, blanks: KbBlanks, known: Knowledge | None = None
    ) -> None:
        self._plan, self._terms, self._blanks = plan, terms, blanks
        self._streams = [content.stream for content in plan.contents]
        """By window."""
        windows = [window_of(content.window.operators[0]) for content in plan.contents]
        self._standing = Standing(plan.flow, plan.report, windows, kb, blanks, terms, known)
        self.too_many: Mapping[int, int] = {}
        """How many rows the last instants would have had of which none was emitted, by their times."""

    @property
    def knowledge(self) -> Knowledge:
        """Its answers of the KB."""
        return self._standing.knowledge

    def advance(self, batches: Sequence[EventBatch]) -> tuple[I64, FullRows]:
        """Complete events by stream in order of time, of which there are some; when something is emitted, and what.
        Raises KbError, LimitError."""
        times, at, values = self._standing.push([batches[stream] for stream in self._streams])
        if self._standing.too_many or self.too_many:
            self.too_many = {int(times[number]): given for number, given in self._standing.too_many.items()}
        if not len(at):
            return at, NO_ROWS
        of_kb = self._blanks.ids if len(at) > 1 else _NO_IDS  # one row has its order
        at, rows = full_rows(self._plan, at, values, of_kb, self._terms)
        return times[at], rows

    @property
    def instants(self) -> list[int]:
        """By stream how many it has had, if windows count them."""
        found = [0] * len(self._plan.streams)
        for stream, count in zip(self._streams, self._standing.leaves.instants, strict=True):
            found[stream] = max(found[stream], count)
        return found

    def start(self, instants: Sequence[int]) -> None:
        """Streams have had so many, and windows hold nothing."""
        self._standing.leaves.start([instants[stream] for stream in self._streams])

    def pass_over(self, batches: Sequence[EventBatch]) -> None:
        """The same, but emits nothing, and the KB has not changed. Raises LimitError."""
        if any(map(len, batches)):
            self._standing.pass_over([batches[stream] for stream in self._streams])

    # --- its memory ----------------------------------------------------------------------------------

    @property
    def state(self) -> dict[str, int]:
        """Numbers of live records."""
        return self._standing.state


def window_of(operator: object) -> Window:
    """A window of such a query."""
    assert isinstance(operator, RangeWindow)  # `is_steady` says so
    return Window(operator.size, operator.slide, operator.events)
