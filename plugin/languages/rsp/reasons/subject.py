"""A query over windows as `why` sees it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from oxiseq.engine.rsp.plan import RspOptions, compile_rsp
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import EventName, Filter, GraphPattern, Group, MatchPattern, PatternElement, WindowPattern
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.render_rsp import render_window
from oxiseq.grammar.rsp_algebra import Consume, EventDefinition, IdentityWindow, RspQuery
from oxiseq.grammar.scope import visible_variables
from oxiseq.languages.reasons.provenance import Provenance
from oxiseq.languages.reasons.report import Funnel, Near, Stage, Step
from oxiseq.languages.reasons.where.origins import Held, Origins, held_at
from oxiseq.languages.reasons.where.parts import Part, asked_alone
from oxiseq.languages.reasons.where.subject import WhereSubject, answer_stage, behind, counted
from oxiseq.languages.reasons.why import Answer, Answers, Condition
from oxiseq.languages.rsp.reasons.asking import Source, instants_of

LOOKED: Final = 64
"""Most instants at which parts are evaluated."""
_BEFORE: Final = -(1 << 62)
_SOLUTIONS: Final = 100
"""Most rows of WHERE behind one answer."""
_NONE: Final = Answers()


@dataclass(frozen=True, slots=True)
class Ever:
    """A part of WHERE where windows hold all that has come."""

    where: Group


class WindowSubject(WhereSubject):
    """At one instant: that at which the query comes furthest."""

    def __init__(self, source: Source, said: RspOptions) -> None:
        query = source.query
        bound = {event.name: visible_variables(event.pattern) for event in query.events}
        super().__init__(query.body.where, query.prefixes, bound)
        self.source, self.said, self.query = source, said, query
        self.language, self.late = query.language, source.history.late
        known = instants_of(compile_rsp(query, TermDictionary(), said), source.history).tolist()
        looked = _spread(known)
        self._ladder = {part.where: source.part(part.where, looked) for part in self.ladder}
        self._answers = source.whole(looked)
        self.at = max(looked, key=self._reached, default=None)
        self.notes = _notes(len(known), looked, self._answers)

    def _reached(self, at: int) -> tuple[bool, int, int, int]:
        """How far the query comes at an instant: an answer, else most parts with rows, then most rows of the last."""
        sizes = [len(rows.get(at, _NONE)) for rows in self._ladder.values()]
        parts = next((i for i, size in enumerate(sizes) if not size), len(sizes))
        answered = at in self._answers and parts == len(sizes)  # an aggregate of nothing is an answer, too
        return answered, parts, 0 if answered or not parts else sizes[parts - 1], at

    def begun(self, variant: Any) -> Answers:
        if self.at is None:
            return _NONE
        if isinstance(variant, Ever):
            return replace(self.source, query=self._loose).part(variant.where, (self.at,)).get(self.at, _NONE)
        if variant not in self._ladder:
            return self.source.part(variant, (self.at,)).get(self.at, _NONE)
        return self._ladder[variant].get(self.at, _NONE)

    def whole(self, variant: RspQuery | None = None) -> Answers:
        source, said = self.source, self.said
        if variant is not None:
            source, said = replace(source, query=variant), replace(said, consume=None)
        number, found = Counter[int](), list[Answer]()
        for at in source.told(said):
            number[at] += 1
            found.append(Answer((at, number[at]), {}, (at,)))
        return Answers(tuple(found), source.bounds.matches is not None and len(found) >= source.bounds.matches)

    def outcome(self) -> Stage:
        return answer_stage(self.query.body, self._here)

    @property
    def _here(self) -> Answers:
        return _NONE if self.at is None else self._answers.get(self.at, _NONE)

    # --- conditions -----------------------------------------------------------------------------------

    @cached_property
    def _loose(self) -> RspQuery:
        windows = tuple(replace(w, operators=(IdentityWindow(),)) for w in self.query.windows)
        return replace(self.query, windows=windows)

    def conditions(self, part: Part) -> Iterator[Condition]:
        yield from super().conditions(part)
        if not isinstance(part.added, Filter) and not isinstance(part.holder, GraphPattern):
            text = ", ".join("".join(render_window(o) for o in w.operators) for w in self.query.windows)
            yield Condition("window", text, Ever(part.where))

    def clauses(self) -> Iterator[Condition]:
        consume = self.query.consume or self.said.consume or Consume.UNRESTRICTED
        if consume is not Consume.UNRESTRICTED:
            yield Condition("consumption", f"CONSUME {consume.value}", replace(self.query, consume=None))

    def near(self, condition: Condition, answer: Answer) -> Near:
        if answer.found is None:  # of the whole query
            return Near({"answer": (answer.rank[0],)}, {})
        ever = isinstance(condition.variant, Ever)
        where = condition.variant.where if ever else condition.variant
        origins = self._origins(self._loose if ever else self.query)
        return Near(origins.times(where, answer.found), condition.read(answer))

    # --- windows and their patterns -------------------------------------------------------------------

    def _held(self, query: RspQuery) -> list[Held]:
        return held_at(query, self.source.history, _BEFORE if self.at is None else self.at)

    def _origins(self, query: RspQuery) -> Origins:
        return Origins(self._held(query), self.source.history.terms, self.source.kb, query.events)

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

    def provenances(self, whole: Answers, most: int) -> Iterator[Provenance]:
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


def _spread(instants: Sequence[int]) -> list[int]:
    """Not too many, from the first to the last."""
    if len(instants) <= LOOKED:
        return list(instants)
    return [instants[i] for i in sorted({int(i) for i in np.linspace(0, len(instants) - 1, LOOKED)})]


def _notes(known: int, looked: Sequence[int], whole: Mapping[int, Answers]) -> tuple[str, ...]:
    if not known:
        return ("it is never evaluated: there are no events",)
    which = f"{known:,} instant{'s' * (known > 1)}"
    if known > len(looked):
        which = f"{len(looked)} of {which}, evenly spread"
    return (f"looked at {which}: there are rows at {len(whole)}",)
