"""A conjunctive query over windows and the KB, answered incrementally by `engine/windows` (SPECTRA).

Where it stands: complete events in order, the KB's parts when it has changed → window run → joined rows that are new or
gone → folds (grouping.py, counting.py) → **rows to tell**, by instant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.kb_in_time import KbInTime
from oxiseq.engine.rsp.changes import Changes, Ids, picked
from oxiseq.engine.rsp.counting import Counted
from oxiseq.engine.rsp.grouping import Groups
from oxiseq.engine.rsp.incremental import NativePlan
from oxiseq.engine.rsp.knowledge import KbEvents
from oxiseq.engine.rsp.plan import RspPlan
from oxiseq.engine.rsp.reports import FullRows
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.engine.windows import Answers, WindowRun, compile_windows
from oxiseq.engine.windows import Report as Wanted
from oxiseq.grammar import rsp_algebra as a

_WANTED = {a.Report.RSTREAM: Wanted.ALL, a.Report.ISTREAM: Wanted.NEW, a.Report.DSTREAM: Wanted.ENDED}


class NativeAnswers:
    """All that changes for such a query."""

    def __init__(self, plan: RspPlan, terms: TermDictionary, kb: KbInTime) -> None:
        assert plan.native is not None
        self._plan, self._native = plan, plan.native
        native = plan.native
        self._counted, self._groups = _folds(native, plan.report, terms)
        wanted = _WANTED[plan.report] if self._counted is None else Wanted.NEW | Wanted.ENDED
        compiled = compile_windows([native.query], terms, native.sources)
        self._run = WindowRun(compiled, terms, native.windows, wanted)
        self._kb = KbEvents(native.kb, kb, terms)

    def advance(self, batches: Sequence[EventBatch]) -> list[tuple[NDArray[np.int64], FullRows]]:
        """Complete events by stream in order of time; what is told and when. Raises KbError, LimitError."""
        if not any(map(len, batches)):
            return []
        answers = self._push(batches)
        at, values = self._told(answers)
        return [(answers.time[at], FullRows(values, np.zeros((len(at), 0), np.int64)))]

    def _push(self, batches: Sequence[EventBatch]) -> Answers:
        if self._native.sources == 1:
            return self._run.push(batches[0])
        first = min(int(batch.time[0]) for batch in batches if len(batch))
        contents = [batches[content.stream] for content in self._plan.contents]
        return self._run.push_each([*contents, *self._kb.events(first)])

    def _told(self, answers: Answers) -> tuple[NDArray[np.int64], Ids]:
        """Numbers of instants, ascending, and the rows."""
        fold, (new,), (ended,), (every,) = self._native.fold, answers.new, answers.ended, answers.all
        if self._counted is None:
            rows = {a.Report.RSTREAM: every, a.Report.ISTREAM: new, a.Report.DSTREAM: ended}[self._plan.report]
            return rows.at, rows.values if fold is None else picked(rows.values, fold.columns)
        assert fold is not None  # what else is counted
        changes = Changes.of(new.at, new.values, ended.at, ended.values)
        if self._groups is not None:
            changes = self._groups.changes(changes, len(answers.time))
        else:
            changes = Changes(changes.at, changes.sign, changes.columns(fold.columns))
        return self._counted.told(changes, len(answers.time))

    # --- what it holds ------------------------------------------------------------------------------

    def held_ids(self) -> Iterator[Ids]:
        """The terms of the answer and of the KB's parts; the run holds its own."""
        yield from self._kb.held_ids()
        if self._counted is not None:
            yield self._counted.held_ids()
        if self._groups is not None:
            yield self._groups.held_ids()

    @property
    def state(self) -> dict[str, int]:
        """Numbers of live records."""
        found = {"triples": len(self._run)}
        if self._groups is not None:
            found["groups"] = len(self._groups)
        if self._counted is not None:
            found["rows"] = len(self._counted)
        return found

    @property
    def bytes(self) -> int:
        """How large it is, without what folds remember."""
        return self._run.bytes

    def save(self, terms: SavedTerms) -> State:
        """Its state between pushes."""
        return {
            "run": self._run.save(terms),
            "kb": self._kb.save(terms),
            "counted": None if self._counted is None else self._counted.save(terms),
            "groups": None if self._groups is None else self._groups.save(terms),
        }

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Go on from a saved state."""
        self._run.restore(state["run"], terms)
        self._kb.restore(state["kb"], terms)
        if self._counted is not None:
            self._counted.restore(state["counted"], terms)
        if self._groups is not None:
            self._groups.restore(state["groups"], terms)


def _folds(native: NativePlan, report: a.Report, terms: TermDictionary) -> tuple[Counted | None, Groups | None]:
    """What counts rows, and what groups them before; all rows of an instant can be told without counting."""
    fold = native.fold
    if fold is None or (report is a.Report.RSTREAM and not fold.distinct and fold.grouping is None):
        return None, None
    groups = None if fold.grouping is None else Groups(fold.grouping, terms)
    width = len(fold.columns if fold.grouping is None else fold.grouping.shown)
    return Counted(width, fold.distinct, report), groups
