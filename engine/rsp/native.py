"""A conjunctive pattern over one window, answered incrementally by `engine/windows` (SPECTRA).

Where it stands: complete events in order → window run → **rows to tell**, by instant.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.rsp.plan import RspPlan
from oxiseq.engine.rsp.reports import FullRows
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.engine.windows import Report as Wanted
from oxiseq.engine.windows import Window, WindowRun, compile_windows
from oxiseq.grammar import rsp_algebra as a

_WANTED = {a.Report.RSTREAM: Wanted.ALL, a.Report.ISTREAM: Wanted.NEW, a.Report.DSTREAM: Wanted.ENDED}


class NativeAnswers:
    """All that changes for such a query."""

    def __init__(self, plan: RspPlan, terms: TermDictionary) -> None:
        assert plan.native is not None
        self._plan = plan
        operators = plan.contents[0].window.operators
        (operator,) = operators
        assert isinstance(operator, a.RangeWindow)
        self._run = WindowRun(
            compile_windows([plan.native], terms),
            terms,
            Window(operator.size, operator.slide, operator.events),
            _WANTED[plan.report],
        )

    def advance(self, batch: EventBatch) -> list[tuple[NDArray[np.int64], FullRows]]:
        """Complete events in order of time; what is told and when."""
        if not len(batch):
            return []
        answers = self._run.push(batch)
        rows = {a.Report.RSTREAM: answers.all, a.Report.ISTREAM: answers.new, a.Report.DSTREAM: answers.ended}[
            self._plan.report
        ][0]
        return [(answers.time[rows.at], FullRows(rows.values, np.zeros((len(rows), 0), np.int64)))]

    @property
    def state(self) -> dict[str, int]:
        """Numbers of live records."""
        return {"triples": len(self._run)}

    @property
    def bytes(self) -> int:
        """How large it is."""
        return self._run.bytes

    def save(self, terms: SavedTerms) -> State:
        """Its state between pushes."""
        return self._run.save(terms)

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Go on from a saved state."""
        self._run.restore(state, terms)


