"""Why a query over windows has answers or not: reported for one instant, that at which it comes furthest.

    streams ─▶ history ─▶ rows of the parts of WHERE at many instants ─▶ the instant ─▶ languages/reasons

The parts are evaluated as the query itself is where it is not incremental: by Oxigraph, over a store that follows the
windows and holds what is queried from the knowledge base.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.order.watermarks import AFTER_ALL
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.rsp.held import Held as Contents
from oxiseq.engine.rsp.plan import RspOptions, RspPlan, compile_rsp
from oxiseq.engine.rsp.schedule import Schedule
from oxiseq.engine.run.rsp import RspRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import (
    EventName,
    Filter,
    GraphPattern,
    Group,
    MatchPattern,
    PatternElement,
    SubSelect,
    WindowPattern,
)
from oxiseq.grammar.rsp_algebra import Consume, EventDefinition, IdentityWindow, Report, RspQuery
from oxiseq.grammar.scope import visible_variables
from oxiseq.grammar.windows.texts import render_window
from oxiseq.languages.reasons.read import FREE, Bounds, History, worked
from oxiseq.languages.reasons.report import Funnel, Near, Provenance, Stage, Step
from oxiseq.languages.reasons.where.origins import HeldEvents, Origins, held_at
from oxiseq.languages.reasons.where.parts import Part, asked_alone
from oxiseq.languages.reasons.where.subject import WhereSubject, answer_stage, behind, counted, rows
from oxiseq.languages.reasons.why import MOST, FoundRow, FoundRows, WhyCondition

LOOKED: Final = 64
"""Most instants at which parts are evaluated."""
_BEFORE: Final = -(1 << 62)
_SOLUTIONS: Final = 100
"""Most rows of WHERE behind one answer."""
_NONE: Final = FoundRows()


class WindowSubject(WhereSubject):
    """At one instant: that at which the query comes furthest. A variant is a part of WHERE, or a query of it."""

    def __init__(
        self, query: RspQuery, history: History, kb: KnowledgeBase, said: RspOptions, bounds: Bounds = FREE
    ) -> None:
        bound = {event.name: visible_variables(event.pattern) for event in query.events}
        super().__init__(query.body.where, query.prefixes, bound)
        self.query, self.history, self.kb, self.said, self.bounds = query, history, kb, said, bounds
        self.language, self.late = query.language, history.late
        known = _instants(compile_rsp(query, TermDictionary(), said), history).tolist()
        looked = _spread(known)
        self._ladder = {part.where: self._rows(self._part(part.where), looked) for part in self.ladder}
        body = replace(query.body, limit=1) if query.form == "ASK" else query.body
        self._answers = self._rows(self._plain(body), looked)
        self.at = max(looked, key=self._reached, default=None)
        self.notes = _notes(len(known), looked, self._answers)

    def _reached(self, at: int) -> tuple[bool, int, int, int]:
        """How far the query comes at an instant: an answer, else most parts with rows, then most rows of the last."""
        sizes = [len(found.get(at, _NONE)) for found in self._ladder.values()]
        parts = next((i for i, size in enumerate(sizes) if not size), len(sizes))
        answered = at in self._answers and parts == len(sizes)  # an aggregate of nothing is an answer, too
        return answered, parts, 0 if answered or not parts else sizes[parts - 1], at

    # --- variants, run --------------------------------------------------------------------------------

    def _plain(self, body: SubSelect) -> RspQuery:
        """A SELECT of all rows at each instant, without consumption."""
        form = replace(self.query, form="SELECT", template=(), body=body)
        return replace(form, report=Report.RSTREAM, into=None, consume=None, when=None)

    def _part(self, where: Group) -> RspQuery:
        return self._plain(SubSelect(None, where, limit=MOST))

    def _run(self, query: RspQuery, said: RspOptions) -> tuple[RspPlan, MatchBatch]:
        plan = compile_rsp(query, self.history.terms, said)
        run = RspRun(plan, self.history.terms, self.kb)
        found, _ = worked(run, plan.streams, self.history, self.bounds, self.bounds.matches)
        return plan, MatchBatch.concat(found, len(plan.columns))

    def _rows(self, query: RspQuery, instants: Sequence[int]) -> dict[int, FoundRows]:
        """Instant → rows of a plain query there, of the instants that have some."""
        plan, batch = self._run(query, RspOptions(None, tuple(instants), None))
        found: dict[int, FoundRows] = {}
        for at in np.unique(batch.time).tolist():
            mine = rows(plan.columns, batch.values[batch.time == at], self.history.terms)
            found[at] = FoundRows(mine, len(mine) >= MOST)
        return found

    def begun(self, variant: Group | RspQuery) -> FoundRows:
        if self.at is None:
            return _NONE
        found = self._ladder.get(variant) if isinstance(variant, Group) else None
        if found is None:
            query = self._part(variant) if isinstance(variant, Group) else variant
            found = self._rows(query, (self.at,))
        return found.get(self.at, _NONE)

    def whole(self, variant: RspQuery | None = None) -> FoundRows:
        """When answers are emitted; all of an instant are alike."""
        said = self.said if variant is None else replace(self.said, consume=None)
        _, batch = self._run(variant or self.query, said)
        number, found = Counter[int](), list[FoundRow]()
        for at in batch.time.tolist():
            number[at] += 1
            found.append(FoundRow((at, number[at]), {}, (at,)))
        return FoundRows(tuple(found), self.bounds.matches is not None and len(found) >= self.bounds.matches)

    def outcome(self, whole: FoundRows) -> Stage:
        return answer_stage(self.query.body, self._here)

    @property
    def _here(self) -> FoundRows:
        return _NONE if self.at is None else self._answers.get(self.at, _NONE)

    # --- conditions -----------------------------------------------------------------------------------

    def conditions(self, part: Part) -> Iterator[WhyCondition]:
        yield from super().conditions(part)
        if not isinstance(part.added, Filter) and not isinstance(part.holder, GraphPattern):
            windows = self.query.windows
            text = ", ".join("".join(map(render_window, window.operators)) for window in windows)
            ever = tuple(replace(window, operators=(IdentityWindow(),)) for window in windows)
            yield WhyCondition("window", text, replace(self._part(part.where), windows=ever))

    def clauses(self) -> Iterator[WhyCondition]:
        consume = self.query.consume or self.said.consume or Consume.UNRESTRICTED
        if consume is not Consume.UNRESTRICTED:
            yield WhyCondition("consumption", f"CONSUME {consume.value}", replace(self.query, consume=None))

    def near(self, condition: WhyCondition, answer: FoundRow) -> Near:
        if answer.found is None:  # of the whole query
            return Near({"answer": (answer.rank[0],)}, {})
        variant = condition.variant
        query = self._part(variant) if isinstance(variant, Group) else variant
        return Near(self._origins(query).times(query.body.where, answer.found), condition.read(answer))

    # --- windows and their patterns -------------------------------------------------------------------

    def _held(self, query: RspQuery) -> list[HeldEvents]:
        return held_at(query, self.history, _BEFORE if self.at is None else self.at)

    def _origins(self, query: RspQuery) -> Origins:
        return Origins(self._held(query), self.history.terms, self.kb, query.events)

    def patterns(self) -> Iterator[Funnel]:
        alone = asked_alone(self.where)
        for window, held in zip(self.query.windows, self._held(self.query), strict=True):
            operators = "".join(map(render_window, window.operators))
            name = "the default graph" if window.name is None else self.write.term(window.name)
            steps = [self.alone(h, e) for h, e in alone if _of(h, window.name)]
            triples = Step("holds", "triples", len(held.places))
            yield Funnel(f"{name} {operators}", held.stream, len(held.batch), (triples, *steps))
        if any(isinstance(part.added, MatchPattern) for part in self.ladder):
            yield Funnel("events", "", 0, tuple(map(self._mappings, self.query.events)))
        default = any(window.name is None for window in self.query.windows)
        of_kb = [(h, e) for h, e in alone if isinstance(h, GraphPattern) or (h is None and not default)]
        if of_kb:
            yield Funnel("the knowledge base", "", 0, tuple(self.alone(h, e) for h, e in of_kb))

    def _mappings(self, event: EventDefinition) -> Step:
        matched = Group((MatchPattern(EventName(event.name), visible_variables(event.pattern)),))
        return counted(len(self.begun(matched)), "mapping", f"of {event.name}")

    def provenances(self, whole: FoundRows, most: int) -> Iterator[Provenance]:
        """Of the first answers at the instant."""
        if self.at is None or not self._here or not most:
            return
        origins, where = self._origins(self.query), self.begun(self.where)
        for answer in self._here.all[:most]:
            yield origins.provenance(self.at, self.where, answer.values, behind(answer, where)[:_SOLUTIONS])


def _of(holder: PatternElement | None, window: object) -> bool:
    """Whether the pattern there is evaluated on the window."""
    if isinstance(holder, WindowPattern):
        return window is not None and holder.name == window
    return holder is None and window is None


def _instants(plan: RspPlan, history: History) -> NDArray[np.int64]:
    """Those at which the query is answered; of its periods those at which the windows hold something else."""
    batches = [history.batches[stream] for stream in plan.streams]
    contents = [replace(content, asked=False, default=False) for content in plan.contents]
    held = Contents(contents, [None] * len(batches), Schedule(plan.rhythm))
    for stream, batch in enumerate(batches):
        held.add(stream, batch)
    return held.due(batches, AFTER_ALL, ended=True).at


def _spread(instants: Sequence[int]) -> list[int]:
    """Not too many, from the first to the last."""
    if len(instants) <= LOOKED:
        return list(instants)
    return [instants[i] for i in sorted({int(i) for i in np.linspace(0, len(instants) - 1, LOOKED)})]


def _notes(known: int, looked: Sequence[int], whole: Mapping[int, FoundRows]) -> tuple[str, ...]:
    if not known:
        return ("it is never evaluated: there are no events",)
    which = f"{known:,} instant{'s' * (known > 1)}"
    if known > len(looked):
        which = f"{len(looked)} of {which}, evenly spread"
    return (f"looked at {which}: there are rows at {len(whole)}",)
