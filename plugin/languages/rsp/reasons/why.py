"""Why a query over windows has answers or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from oxiseq.engine.rsp.plan import RspOptions, compile_rsp
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import EventName, Filter, GraphPattern, Group, MatchPattern, PatternElement, WindowPattern
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.render_rsp import render_window
from oxiseq.grammar.render_sparql import SparqlWriter
from oxiseq.grammar.rsp_algebra import Consume, IdentityWindow, RspQuery
from oxiseq.grammar.scope import visible_variables
from oxiseq.languages.reasons.provenance import Provenance
from oxiseq.languages.reasons.report import SHOWN, Funnel, Reason, Stage, Step, Why
from oxiseq.languages.reasons.where.contents import Contents
from oxiseq.languages.reasons.where.origins import Origins, Row
from oxiseq.languages.reasons.where.parts import Part, asked_alone, parts
from oxiseq.languages.reasons.where.reasons import counted, reasons
from oxiseq.languages.reasons.where.relax import Relaxation, relaxations
from oxiseq.languages.reasons.where.rows import MOST, Rows
from oxiseq.languages.rsp.reasons.asking import Source, instants_of

LOOKED: Final = 64
"""Most instants at which parts are evaluated."""
_BEFORE: Final = -(1 << 62)
_SOLUTIONS: Final = 100
"""Most rows of WHERE behind one answer."""


def why_windows(source: Source, said: RspOptions, provenance: int = SHOWN) -> Why:
    """Of a history. Raises OxiseqError as `run` does, KbError, LimitError."""
    query, history = source.query, source.history
    told, more = source.told(said)
    bound = {event.name: visible_variables(event.pattern) for event in query.events}
    ladder = parts(query.body.where, dict(query.prefixes), bound)
    known = instants_of(compile_rsp(query, TermDictionary(), said), history)
    looked = _spread(known.tolist())
    counts = [source.part(part.where, looked) for part in ladder]
    whole = source.whole(looked)
    at = _furthest(looked, counts, whole)
    teller = _Teller(source, ladder, at)
    here = [rows.get(at, _NONE) if at is not None else _NONE for rows in counts]
    answers = whole.get(at, _NONE) if at is not None else _NONE
    stopped = next((i for i, rows in enumerate(here) if not len(rows)), None)
    stages = [Stage(part.text, len(rows), rows.more) for part, rows in zip(ladder, here, strict=True)]
    stages.append(Stage(_answer_text(query), len(answers), answers.more))
    found_reasons: list[Reason] = []
    if at is not None and ladder:
        last = len(ladder) - 1 if stopped is None else stopped
        found_reasons += sorted(teller.reasons(last, here[last]), key=lambda reason: -reason.matches)
    found_reasons += _consumption(source, said, told)
    return Why(
        tuple(teller.funnels()),
        tuple(stages),
        _stopped(ladder, stages, stopped),
        tuple(found_reasons),
        told,
        more,
        history.late,
        tuple(teller.provenances(answers, provenance)),
        query.language,
        at,
        _notes(len(known), looked, whole),
    )


_NONE: Final = Rows((), np.zeros((0, 0), np.uint32))


def _spread(instants: Sequence[int]) -> list[int]:
    """Not too many, from the first to the last."""
    if len(instants) <= LOOKED:
        return list(instants)
    return [instants[i] for i in sorted({int(i) for i in np.linspace(0, len(instants) - 1, LOOKED)})]


def _furthest(looked: Sequence[int], counts: Sequence[Mapping[int, Rows]], whole: Mapping[int, Rows]) -> int | None:
    """The last of those that have answers, else of those where most parts have rows, then the one with most rows of
    the last such part."""

    def score(at: int) -> tuple[bool, int, int, int]:
        sizes = [len(rows.get(at, _NONE)) for rows in counts]
        length = next((i for i, size in enumerate(sizes) if not size), len(sizes))
        answered = at in whole and length == len(sizes)  # an aggregate of nothing is an answer too
        return answered, length, 0 if answered or not length else sizes[length - 1], at

    return max(looked, key=score, default=None)


def _answer_text(query: RspQuery) -> str:
    body = query.body
    clauses = ("GROUP BY", body.group_by), ("HAVING", body.having), ("DISTINCT", body.distinct), ("LIMIT", body.limit)
    used = " and ".join(name for name, there in clauses if there)
    return f"the answer, after {used}" if used else "the answer"


def _stopped(ladder: Sequence[Part], stages: Sequence[Stage], stopped: int | None) -> str | None:
    if stopped is not None:
        return ladder[stopped].text
    return None if stages[-1].matches else stages[-1].text


def _notes(known: int, looked: Sequence[int], whole: Mapping[int, Rows]) -> tuple[str, ...]:
    if not known:
        return ("it is never evaluated: there are no events",)
    which = f"{known:,} instant{'s' * (known > 1)}"
    if known > len(looked):
        which = f"{len(looked)} of {which}, evenly spread"
    return (f"looked at {which}: there are rows at {len(whole)}",)


def _consumption(source: Source, said: RspOptions, told: int) -> Iterator[Reason]:
    """How many answers are missing since their items were used before."""
    consume = source.query.consume or said.consume or Consume.UNRESTRICTED
    if consume is Consume.UNRESTRICTED:
        return
    loose = replace(source, query=replace(source.query, consume=None))
    more = loose.told(replace(said, consume=None))[0] - told
    if more > 0:
        yield Reason("consumption", f"CONSUME {consume.value}", more, False, ())


@dataclass(frozen=True, slots=True)
class _Teller:
    """What is listed of one instant."""

    source: Source
    ladder: Sequence[Part]
    at: int | None

    @property
    def query(self) -> RspQuery:
        return self.source.query

    def ask(self, where: Group) -> Rows:
        """The rows of a part."""
        return _NONE if self.at is None else self.source.part(where, (self.at,)).get(self.at, _NONE)

    @property
    def loose(self) -> RspQuery:
        """The query with windows that hold all that has come."""
        windows = tuple(replace(w, operators=(IdentityWindow(),)) for w in self.query.windows)
        return replace(self.query, windows=windows)

    def _origins(self, query: RspQuery) -> Origins:
        source = self.source
        contents = Contents.at(query, source.history, _BEFORE if self.at is None else self.at)
        return Origins(contents, source.history.terms, source.kb, query.events)

    # --- windows and their patterns -----------------------------------------------------------------

    def funnels(self) -> Iterator[Funnel]:
        contents = Contents.at(self.query, self.source.history, _BEFORE if self.at is None else self.at)
        writer = SparqlWriter(dict(self.query.prefixes))
        for held in contents.windows:
            operators = "".join(render_window(o) for o in held.window.operators)
            name = writer.term(held.window.name) if held.window.name is not None else "the default graph"
            holders = [(h, e) for h, e in asked_alone(self.query.body.where) if _of(h, held.window.name)]
            steps = [Step("holds", "triples", held.triples), *(self._alone(h, e, writer) for h, e in holders)]
            yield Funnel(f"{name} {operators}", held.stream, len(held.batch), tuple(steps))
        steps = [self._mappings(event.name) for event in self.query.events if self._matched(event.name)]
        if steps:
            yield Funnel("events", "", 0, tuple(steps))
        graphs = [
            (h, e)
            for h, e in asked_alone(self.query.body.where)
            if isinstance(h, GraphPattern) or (h is None and not contents.default)
        ]
        if graphs:
            yield Funnel("the knowledge base", "", 0, tuple(self._alone(h, e, writer) for h, e in graphs))

    def _alone(self, holder: PatternElement | None, element: PatternElement, writer: SparqlWriter) -> Step:
        where: PatternElement = element
        if isinstance(holder, WindowPattern | GraphPattern):
            where = replace(holder, pattern=Group((element,)))
        rows = self.ask(Group((where,)))
        text = " ".join(writer.element(element, "").split()).removesuffix(" .")
        return counted(len(rows), "row", f"of {text}", MOST)

    def _matched(self, name: str) -> bool:
        return any(isinstance(part.added, MatchPattern) for part in self.ladder) and bool(name)

    def _mappings(self, name: str) -> Step:
        definition = next(event for event in self.query.events if event.name == name)
        rows = self.ask(Group((MatchPattern(EventName(name), visible_variables(definition.pattern)),)))
        return counted(len(rows), "mapping", f"of {name}", MOST)

    # --- reasons ------------------------------------------------------------------------------------

    def reasons(self, number: int, strict: Rows) -> Iterator[Reason]:
        """Of a part."""
        part, terms = self.ladder[number], self.source.history.terms
        known, ever = self._origins(self.query), self._origins(self.loose)

        def times(relaxation: Relaxation, rows: Rows, index: int) -> dict[str, tuple[int, ...]]:
            origins = ever if relaxation.kind == "window" else known
            return origins.times(relaxation.where, rows.bound(index))

        each = [*relaxations(part, dict(self.query.prefixes)), *self._windows(part)]
        yield from reasons(each, strict, self.ask, terms, times)

    def _windows(self, part: Part) -> Iterator[Relaxation]:
        """Windows that hold all that has come by then."""
        if isinstance(part.added, Filter) or isinstance(part.holder, GraphPattern):
            return
        source = replace(self.source, query=self.loose)

        def ask(where: Group) -> Rows:
            return _NONE if self.at is None else source.part(where, (self.at,)).get(self.at, _NONE)

        text = ", ".join("".join(render_window(o) for o in w.operators) for w in self.query.windows)
        yield Relaxation("window", text, part.where, ask=ask)

    # --- what answers were made of ------------------------------------------------------------------

    def provenances(self, answers: Rows, most: int) -> Iterator[Provenance]:
        """Of the first answers at the instant: of all rows of WHERE that agree with each."""
        if self.at is None or not len(answers):
            return
        where, terms = self.query.body.where, self.source.history.terms
        origins = self._origins(self.query)
        rows = self.ask(where)
        for index in range(min(most, len(answers))):
            bound = answers.bound(index)
            behind = [row for row in map(rows.bound, range(len(rows))) if _agrees(row, bound, rows.columns)]
            answer = {name: terms.term(i) for name, i in bound.items()}
            yield origins.provenance(self.at, where, answer, behind[:_SOLUTIONS])


def _agrees(row: Row, answer: Row, columns: Sequence[str]) -> bool:
    return all(row.get(name) == i for name, i in answer.items() if name in columns)


def _of(holder: PatternElement | None, window: object) -> bool:
    """Whether the pattern there is evaluated on the window."""
    if isinstance(holder, WindowPattern):
        return window is not None and holder.name == window
    return holder is None and window is None
