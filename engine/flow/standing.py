"""A plan at work over windows and the knowledge base.

In the flow: events that come into windows, the KB's changes, rows that others give → operators → **rows to emit**,
by instant. A tick is an instant here: all that comes and goes then is one step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.flow.conjunctions import apart
from oxiseq.engine.flow.delta import I64, Delta, Ids
from oxiseq.engine.flow.flow import Flow
from oxiseq.engine.flow.knowledge import KbAnswers, Knowledge
from oxiseq.engine.flow.leaves import Leaves, Moves
from oxiseq.engine.flow.ordering import in_order
from oxiseq.engine.flow.plan import Asked, FlowPlan, Given, Only, is_one_to_one
from oxiseq.engine.flow.sparql.around import Lowered
from oxiseq.engine.flow.told import Told
from oxiseq.engine.kb_in_time import KbInTime
from oxiseq.engine.terms.blanks import KbBlanks
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import Stateful, part, value
from oxiseq.engine.window import Window
from oxiseq.grammar.rsp_algebra import Report

_ONLY: Final[Mapping[Report, Only]] = {Report.ISTREAM: "COME", Report.DSTREAM: "GO"}
_MORE: Final = 8
"""How many times as much as at an instant is made, and tried, where operators take in again what windows hold: that is
of many instants, and one may be among them that is beyond a bound."""


def only_of(plan: FlowPlan, report: Report, compared: int) -> Only:
    """Which rows of its conjunctions a plan needs for its output."""
    alone = is_one_to_one(plan) and compared == plan.widths[plan.root]
    return _ONLY.get(report, "") if alone else ""


class Standing(Stateful):
    """All that changes for a query. windows: changes of their contents, by number, unused by `move`; knowledge: what
    it knows of the KB, if it has been at work before."""

    made_of = value("_tick"), part("_flow"), part("leaves"), part("knowledge", "kb"), part("_told")

    def __init__(
        self,
        lowered: Lowered,
        report: Report,
        windows: Sequence[Window],
        kb: KbInTime,
        blanks: KbBlanks,
        terms: TermDictionary,
        knowledge: Knowledge | None = None,
    ) -> None:
        only = only_of(lowered.plan, report, lowered.compared)
        plan, needed = apart(lowered.plan, dict.fromkeys(range(len(lowered.plan.forms)), only))
        self._flow = Flow(plan, terms)
        self.leaves = Leaves(plan, self._flow.nodes, windows, needed, terms)
        self._tables = [place for place, form in enumerate(plan.forms) if isinstance(form, Asked)]
        asked = [form for form in plan.forms if isinstance(form, Asked)]
        self.knowledge = knowledge or Knowledge(self.leaves.graphs, asked, kb, blanks, terms)
        self.knowledge.anew()
        self._given = {form.name: place for place, form in enumerate(plan.forms) if isinstance(form, Given)}
        self._told = Told(
            report,
            plan.widths[plan.root],
            lowered.compared,
            plan.raw[plan.root],
            lambda group, rows: in_order(group, rows, lowered.order, blanks.ids, terms),
            terms.bounds.rows,
        )
        self._bounds = terms.bounds
        self._tick = 0
        """The next one."""

    def push(self, batches: Sequence[EventBatch]) -> tuple[I64, I64, Ids]:
        """Events by window, each in order of time: the times of their instants, numbers of instants, ascending, and the
        rows to emit at them. Raises KbError, LimitError."""
        self._flow.bound(self._bounds.made, self._bounds.reads)
        graphs = self._know(self.knowledge.changed())
        first = self._tick
        times = self.leaves.push(batches, graphs, first, self._flow)
        self._tick += len(times)
        return times, *self._told.rows(self._flow.found.delta, first, len(times))

    def pass_over(self, batches: Sequence[EventBatch]) -> None:
        """As `push`, before any other, but emits nothing, and the KB has not changed; bounds within an instant are
        `_MORE` times as large. Raises LimitError."""
        self._bound_more()
        graphs, first = self._know(self.knowledge.unchanged()), self._tick
        self._tick += len(self.leaves.push(batches, graphs, first))
        self._told.pass_over(self._flow.step(first))

    def move(self, moves: Moves, given: Mapping[str, Delta]) -> tuple[I64, Ids]:
        """Several instants: how windows move; by name changes of the given rows, tick k being
        instant k. Numbers of instants, ascending, and the rows to emit at them. Raises KbError, LimitError."""
        self._flow.bound(self._bounds.made, self._bounds.reads)
        self._feed(moves, self._know(self.knowledge.changed()), given)
        return self._step(len(moves.low))

    def pass_over_moves(self, moves: Moves, given: Mapping[str, Delta]) -> None:
        """As `move`, in the same way. Raises LimitError."""
        self._bound_more()
        self._feed(moves, self._know(self.knowledge.unchanged()), given)
        first, self._tick = self._tick, self._tick + len(moves.low)
        self._told.pass_over(self._flow.step(first))

    def _bound_more(self) -> None:
        self._flow.bound(_MORE * self._bounds.made, _MORE * self._bounds.reads)

    def _feed(self, moves: Moves, graphs: Sequence[EventBatch], given: Mapping[str, Delta]) -> None:
        self.leaves.move(moves, graphs, self._tick)
        for name, delta in given.items():
            if len(delta):
                self._flow.feed(self._given[name], Delta(delta.at + self._tick, delta.weight, delta.rows))

    @property
    def too_many(self) -> Mapping[int, int]:
        """How many rows instants of the last step would have had of which none was emitted, by their numbers."""
        return self._told.too_many

    @property
    def begun(self) -> bool:
        """Whether there has been an instant."""
        return self._tick > 0

    def _know(self, answers: KbAnswers | None) -> Sequence[EventBatch]:
        """The present content of the KB's graphs, if that has changed; tables go to their operators."""
        if answers is None:
            return ()
        for place, delta in zip(self._tables, self.knowledge.changes(answers, self._tick), strict=True):
            self._flow.feed(place, delta)
        return answers.graphs

    def _step(self, instants: int) -> tuple[I64, Ids]:
        first, self._tick = self._tick, self._tick + instants
        return self._told.rows(self._flow.step(first), first, instants)

    # --- its memory ----------------------------------------------------------------------------------

    @property
    def state(self) -> dict[str, int]:
        """Numbers of live records."""
        return {"triples": self.leaves.triples, "rows": self._flow.records + len(self._told)}
