"""Plans at work over windows and the knowledge base: of one query (`Standing`), of several (rsp/joint.py).

In the flow: events that come into windows, the KB's changes, rows that others give → operators → **rows to emit**,
by instant. A tick is an instant here: all that comes and goes then is one step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.flow.conjunctions import Apart, apart
from oxiseq.engine.flow.delta import I64, Delta, Ids
from oxiseq.engine.flow.flow import Flow
from oxiseq.engine.flow.knowledge import KbAnswers, KbPart, Knowledge
from oxiseq.engine.flow.leaves import Leaves, Moves
from oxiseq.engine.flow.ordering import in_order
from oxiseq.engine.flow.plan import Asked, FlowPlan, Given, Only, is_one_to_one
from oxiseq.engine.flow.sparql.around import Lowered
from oxiseq.engine.flow.told import Told
from oxiseq.engine.kb_in_time import KbInTime
from oxiseq.engine.terms.blanks import KbBlanks
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import MadeOf, Stateful, part, value
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


class WindowFlow(Stateful):
    """Operators at work over windows and the knowledge base. plan: one of single patterns; windows: changes of their
    contents, by number, unused by `_move`."""

    made_of: ClassVar[MadeOf] = (value("_tick"), part("_flow"), part("leaves"))
    knowledge: KbPart
    """What they know of the KB."""

    def __init__(self, plan: Apart, windows: Sequence[Window], terms: TermDictionary) -> None:
        self.plan = plan.plan
        self._flow = Flow(self.plan, terms)
        self.leaves = Leaves(self.plan, self._flow.nodes, windows, plan.only, terms)
        self._tables = {place: form for place, form in enumerate(self.plan.forms) if isinstance(form, Asked)}
        self._given = {form.name: place for place, form in enumerate(self.plan.forms) if isinstance(form, Given)}
        self._bounds = terms.bounds
        self._tick = 0
        """The next one."""

    def _bound(self, times: int = 1) -> None:
        """From now on what operators make, and try, at an instant is bounded, by so many times as much as of one."""
        self._flow.bound(times * self._bounds.made, times * self._bounds.reads)

    def _push(
        self, batches: Sequence[EventBatch], answers: KbAnswers | None, driven: Flow | None = None
    ) -> tuple[int, I64]:
        """Events by window, each in order of time, and all that the KB has answered, if that has changed: the tick of
        the first instant, and the times of all. driven: the operators, if they are to take each instant by itself;
        else they take all at once. Raises LimitError."""
        graphs, first = self._know(answers), self._tick
        times = self.leaves.push(batches, graphs, first, driven)
        self._tick += len(times)
        if driven is None:
            self._flow.step(first)
        return first, times

    def _move(self, moves: Moves, given: Mapping[str, Delta], answers: KbAnswers | None) -> int:
        """The same of several instants: how windows move; by name changes of the given rows, tick k being instant k.
        The tick of the first. Raises LimitError."""
        first = self._tick
        self.leaves.move(moves, self._know(answers), first)
        for name, delta in given.items():
            if len(delta):
                self._flow.feed(self._given[name], Delta(delta.at + first, delta.weight, delta.rows))
        self._tick += len(moves.low)
        self._flow.step(first)
        return first

    def _know(self, answers: KbAnswers | None) -> Sequence[EventBatch]:
        """The present content of the KB's graphs, if that has changed; tables go to their operators."""
        if answers is None:
            return ()
        for place, delta in zip(self._tables, self.knowledge.changes(answers, self._tick), strict=True):
            self._flow.feed(place, delta)
        return answers.graphs


class Standing(WindowFlow):
    """All that changes for a query. knowledge: what it knows of the KB, if it has been at work before."""

    made_of = *WindowFlow.made_of, part("knowledge", "kb"), part("_told")
    knowledge: Knowledge

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
        super().__init__(apart(lowered.plan, dict.fromkeys(range(len(lowered.plan.forms)), only)), windows, terms)
        tables = [*self._tables.values()]
        self.knowledge = knowledge or Knowledge(self.leaves.graphs, tables, kb, blanks, terms)
        self.knowledge.anew()
        root = self.plan.root
        self._told = Told(
            report,
            self.plan.widths[root],
            lowered.compared,
            self.plan.raw[root],
            lambda group, rows: in_order(group, rows, lowered.order, blanks.ids, terms),
            terms.bounds.rows,
        )

    def push(self, batches: Sequence[EventBatch]) -> tuple[I64, I64, Ids]:
        """Events by window, each in order of time: the times of their instants, numbers of instants, ascending, and the
        rows to emit at them. Raises KbError, LimitError."""
        self._bound()
        first, times = self._push(batches, self.knowledge.changed(), self._flow)
        return times, *self._told.rows(self._flow.found.delta, first, len(times))

    def pass_over(self, batches: Sequence[EventBatch]) -> None:
        """As `push`, before any other, but emits nothing, and the KB has not changed; bounds within an instant are
        `_MORE` times as large. Raises LimitError."""
        self._bound(_MORE)
        self._push(batches, self.knowledge.unchanged())
        self._told.pass_over(self._flow.rows(self.plan.root))

    def move(self, moves: Moves, given: Mapping[str, Delta]) -> tuple[I64, Ids]:
        """Several instants: how windows move; by name changes of the given rows, tick k being
        instant k. Numbers of instants, ascending, and the rows to emit at them. Raises KbError, LimitError."""
        self._bound()
        first = self._move(moves, given, self.knowledge.changed())
        return self._told.rows(self._flow.rows(self.plan.root), first, len(moves.low))

    def pass_over_moves(self, moves: Moves, given: Mapping[str, Delta]) -> None:
        """As `move`, in the same way. Raises LimitError."""
        self._bound(_MORE)
        self._move(moves, given, self.knowledge.unchanged())
        self._told.pass_over(self._flow.rows(self.plan.root))

    @property
    def too_many(self) -> Mapping[int, int]:
        """How many rows instants of the last step would have had of which none was emitted, by their numbers."""
        return self._told.too_many

    @property
    def begun(self) -> bool:
        """Whether there has been an instant."""
        return self._tick > 0

    # --- its memory ----------------------------------------------------------------------------------

    @property
    def state(self) -> dict[str, int]:
        """Numbers of live records."""
        return {"triples": self.leaves.triples, "rows": self._flow.records + len(self._told)}
