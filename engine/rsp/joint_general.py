"""Queries over the same windows that are answered at instants of their own (REPORT), or look for event patterns
(MATCH), answered together.

In the flow: complete events in order → the contents of all their windows (held.py), event mappings (common_events.py) →
one plan of operators with several roots (joint.py) → **what each query emits**.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.flow.delta import I64
from oxiseq.engine.flow.knowledge import Knowledge
from oxiseq.engine.flow.plan import Given
from oxiseq.engine.patterns.matcher import StreamMatcher
from oxiseq.engine.rsp.common_events import CommonEvents
from oxiseq.engine.rsp.event_mappings import EventMappings
from oxiseq.engine.rsp.general import TOLD, moves_of, repeated
from oxiseq.engine.rsp.held import Held
from oxiseq.engine.rsp.joint import Joint, Numbered, Part
from oxiseq.engine.rsp.joint_kb import JointKnowledge
from oxiseq.engine.rsp.plan import ContentPlan, RspPlan
from oxiseq.engine.rsp.schedule import Stretches
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import Stateful, unsaved
from oxiseq.grammar.rsp_algebra import Report

_MOST_INSTANTS: Final = 1 << 13
"""Instants processed at once for one query; fewer for several that differ, as operators hold the rows of all."""
_LEAST_INSTANTS: Final = 1 << 10


class JointGeneral(Stateful):
    """All that changes for them. held: their events."""

    made_of = unsaved("_joint"), unsaved("_mappings")

    def __init__(
        self, plans: Sequence[RspPlan], terms: TermDictionary, held: Held, known: Sequence[Knowledge] = ()
    ) -> None:
        self._held = held
        self._contents = [_any_of(each) for each in zip(*(plan.contents for plan in plans), strict=True)]
        self._reports = [plan.report for plan in plans]
        self._volatile = any(plan.volatile for plan in plans)
        common = CommonEvents(len(plans[0].streams))
        flows = [common.flow(plan) for plan in plans]
        self._joint = Joint(plans, flows, [TOLD for _ in self._contents], terms, known)
        self._places = {form.name: n for n, form in enumerate(self._joint.plan.forms) if isinstance(form, Given)}
        matchers = [None if request is None else StreamMatcher(request, terms) for request in common.requests(terms)]
        sources = [source for source in common.sources if source.form.name in self._places]
        self._mappings = EventMappings(sources, matchers, held)
        self._most = max(_MOST_INSTANTS // len({*flows}), _LEAST_INSTANTS)
        self._tick = 0
        """The next one."""

    @property
    def knowledge(self) -> JointKnowledge:
        """What all know of the KB."""
        return self._joint.knowledge

    def advance(self, batches: Sequence[EventBatch], passed: int) -> Iterator[Part]:
        """Complete events by stream in order of time; all before `passed` is complete: what is emitted. Raises
        LimitError; the events held are as before then, the rest is of no use."""
        held, before = self._held, self._held.mark()
        try:
            self._mappings.add(batches)
            if self._mappings.beyond:  # each query finds by itself which of its instants are left out
                raise next(iter(self._mappings.beyond.values()))
            due = held.due(batches, passed, ended=False)
            if self._volatile:
                held.schedule.check(due)
            held.schedule.go_on(due)
            for low in range(0, len(due), self._most):
                yield from self._told(due.slice(low, low + self._most))
        except BaseException:
            held.back_to(before)
            raise
        held.forget()
        self._mappings.forget()

    def _told(self, stretches: Stretches) -> Iterator[Part]:
        held, first = self._held, self._tick
        before = [content.stop for content in held.contents]
        self._joint.bound()
        self._step(before, held.through(stretches.at), len(stretches), self.knowledge.changed)
        for each in self._joint.told(first, len(stretches)):
            report = self._reports[each.pieces[0][0][0]]  # of all that emit it
            if report is Report.RSTREAM and held.schedule.rhythm.ticks:
                yield from self._repeated(each, stretches)
            else:
                yield Part(stretches.at[each.at], each.rows, each.pieces)

    def _repeated(self, numbered: Numbered, stretches: Stretches) -> Iterator[Part]:
        for queries, low, high in numbered.pieces:
            index = np.arange(low, high)
            rows = numbered.rows.take(index)
            at, rows = repeated(Report.RSTREAM, self._held.schedule, stretches, numbered.at[index], rows)
            yield Part(at, rows, [(queries, 0, len(at))])

    def _step(
        self,
        before: Sequence[int],
        bounds: Sequence[tuple[I64, I64]],
        instants: int,
        knows_more: Callable[[], bool],
    ) -> None:
        """Windows continue, from places up to which they have had events."""
        first, self._tick = self._tick, self._tick + instants
        moves = moves_of(self._contents, self._held, before, bounds, instants)
        self._joint.leaves.move(moves, self._joint.know(knows_more, first), first)
        for name, delta in self._mappings.move(bounds, first).items():
            if len(delta):
                self._joint.flow.feed(self._places[name], delta)
        self._joint.flow.step(first)

    def take_up(self) -> None:
        """Be as if all that is held had come, and the last instant had been answered. Raises LimitError."""
        held = self._held
        self._mappings.take_up()
        self._mappings.beyond = {}
        if held.begun:
            now = [content.places for content in held.contents]
            bounds = [(np.array([low]), np.array([high])) for low, high, _ in now]
            self._step([low for low, _, _ in now], bounds, 1, self.knowledge.unchanged)
            self._joint.pass_over()

    # --- its memory ----------------------------------------------------------------------------------

    @property
    def state(self) -> dict[str, int]:
        """Numbers of live records."""
        found = self._joint.state
        return {"items": len(self._held), "mappings": len(self._mappings), **found}

    @property
    def bytes(self) -> int:
        return super().bytes + self._held.bytes


def _any_of(contents: Sequence[ContentPlan]) -> ContentPlan:
    """What several queries ask of one window."""
    return replace(contents[0], asked=any(c.asked for c in contents), default=any(c.default for c in contents))
