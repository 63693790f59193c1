"""A SPAseq query as `why` sees it: its steps are the beginnings of the sequence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.time import to_text
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.grammar.algebra import (
    Atom,
    BoundKind,
    Expression,
    Filter,
    Group,
    PatternElement,
    Query,
    TriplePattern,
)
from oxiseq.grammar.levels import summarises
from oxiseq.grammar.places import overview, split_gpms
from oxiseq.grammar.render_sparql import SparqlWriter
from oxiseq.grammar.scope import GpmParts, expression_variables
from oxiseq.languages.reasons.bounds import FREE, Bounds
from oxiseq.languages.reasons.provenance import Provenance
from oxiseq.languages.reasons.read import History
from oxiseq.languages.reasons.report import SHOWN, Funnel, Near, Step, Wording
from oxiseq.languages.reasons.why import MOST, Answer, Answers, Beginning, Condition, Seen, Subject, length, passed
from oxiseq.languages.sequences.clauses import without_clauses
from oxiseq.languages.spaseq.reasons.answering import answered
from oxiseq.languages.spaseq.reasons.conditions import OfStep, conditions
from oxiseq.languages.spaseq.reasons.origins import provenances
from oxiseq.languages.spaseq.reasons.stages import beginnings, with_items


class SequenceSubject(Subject):
    """Matches of graph patterns in order."""

    wording = Wording("graph patterns", "sequence", "match", "matches")

    def __init__(self, query: Query, history: History, kb: KnowledgeBase, bounds: Bounds = FREE) -> None:
        self.query, self.history, self.kb, self.bounds = query, history, kb, bounds
        self.language, self.late = query.language, history.late

    def beginnings(self) -> Sequence[Beginning]:
        each = list(beginnings(self.query))
        return [
            Beginning(
                at.text,
                with_items(self.query, at.items),
                partial(conditions, self.query, at),
                (number - 1,) if number else (),
                at is each[-1],
            )
            for number, at in enumerate(each)
        ]

    def begun(self, variant: Query) -> Answers:
        return answered(variant, self.history, self.kb, self.bounds)

    def whole(self, variant: Query | None = None) -> Answers:
        return answered(variant or self.query, self.history, self.kb, self.bounds, as_is=True)

    def clauses(self) -> Iterator[Condition]:
        grouped = summarises(overview(self.query))  # then LIMIT leaves out groups
        return (each for each in without_clauses(self.query, MOST) if each.kind != "limit" or not grouped)

    def provenances(self, whole: Answers, most: int) -> Iterator[Provenance]:
        return provenances(self.query, whole.all[:most], self.history, self.kb)

    # --- each graph pattern by itself -----------------------------------------------------------------

    def patterns(self) -> Iterator[Funnel]:
        streams = {s.name: s.iri.value for s in self.query.streams}
        for name, parts in split_gpms(self.query).items():
            batch = self.history.batches[streams[parts.gpm.stream]]
            steps = tuple(self._parts(parts, batch.time.tolist())) if len(batch) else ()
            yield Funnel(name, parts.gpm.stream, len(batch), steps)

    def _parts(self, parts: GpmParts, times: list[int]) -> Iterator[Step]:
        """A triple for each pattern, the pattern, each FILTER, the knowledge base. FILTERs that need what precedes the
        graph pattern are examined in the sequence."""
        before: Seen = {time: {} for time in times}
        elements = parts.pattern.elements
        plain = [e for e in elements if isinstance(e, TriplePattern)]
        for each in plain:
            there = self._alone(parts, (each,))
            before = {time: {} for time in before if time in there}
        if plain:
            each_of = f"each of {len(plain)} patterns" if len(plain) > 1 else "its pattern"
            yield Step("constants", f"a triple for {each_of}", len(before))
        write = SparqlWriter(dict(self.query.prefixes))
        rungs: list[tuple[str, str, Expression | None, tuple[str, ...], tuple[PatternElement, ...]]] = [
            ("pattern", "the graph pattern", None, (), ())
        ]
        rungs += [("filter", write.expression(c), c, _named(c), (Filter(c),)) for c in parts.filters]
        if parts.kb is not None:
            shared = tuple(v.value for v in parts.kb_variables if v in parts.pattern_variables)
            on = f" on {' '.join(f'?{name}' for name in shared)}" if shared else ""
            rungs.append(("kb", f"the knowledge base{on}", None, shared, parts.kb.elements))
            rungs += [("kb filter", write.expression(c), c, _named(c), (Filter(c),)) for c in parts.kb_filters]
        for kind, text, test, shown, more in rungs:
            elements = (*elements, *more)
            now = self._alone(parts, elements)
            yield passed(kind, text, before, now, test, shown)
            before = now

    def _alone(self, parts: GpmParts, elements: tuple[PatternElement, ...]) -> Seen:
        """Time → what one mapping binds there."""
        gpm = replace(parts.gpm, pattern=Group(elements))
        query = replace(with_items(self.query, ((None, Atom(gpm.name)),)), gpms=(gpm,), filters=(), window=None)
        found = answered(query, self.history, self.kb, replace(self.bounds, matches=None), each=1)
        return {answer.rank[1]: answer.values for answer in found.all}

    # --- near misses ----------------------------------------------------------------------------------

    def near(self, condition: Condition, answer: Answer) -> Near:
        events = dict(answer.found)
        values = condition.read(answer) if condition.shown else {}
        return Near(events, values, self._against(condition, answer))

    def _against(self, condition: Condition, answer: Answer) -> str:
        """What is against it, in words."""
        times = sorted(time for _, of in answer.found for time in of)
        if condition.kind == "window":
            return self._span(times[0], times[-1])
        if not isinstance(condition.of, OfStep):
            return ""
        here = sorted(time for gpm, of in answer.found if gpm in condition.of.names for time in of)
        if condition.kind == "contiguity":
            before = max((time for time in times if time < here[0]), default=here[0])
            between = self._instants(before, here[-1], times)
            return _instants_text(between) if between else ""
        if condition.kind == "bound":
            if condition.text.startswith(BoundKind.LASTING.value):
                return f"lasts {length(here[-1] - here[0])}"
            earlier = [time for time in times if time < here[0]]
            return f"{length(here[0] - earlier[-1])} after the event before" if earlier and len(here) == 1 else ""
        if condition.kind == "negation":
            seen = self._seen(condition.of, dict(answer.found))
            return f"there is one at {', '.join(map(to_text, seen[:SHOWN]))}" if seen else ""
        return ""

    def _seen(self, of: OfStep, own: Mapping[str, tuple[int, ...]]) -> list[int]:
        """When (µs) a negated element is seen where these events must not have it; none if that cannot be run."""
        if of.positive is None or of.negated & set(own):
            return []
        try:
            answer = self.begun(of.positive)
        except OxiseqError:
            return []
        found: set[int] = set()
        for each in answer.all:
            if own == {gpm: times for gpm, times in each.found if gpm not in of.negated}:
                here = {time for gpm, times in each.found if gpm in of.negated for time in times}
                began = max((t for times in own.values() for t in times if t < min(here)), default=None)
                if of.within is None or began is None or max(here) <= began + of.within:
                    found |= here
        return sorted(found)

    def _instants(self, after: int, until: int, but: Sequence[int]) -> list[int]:
        instants = self.history.instants
        between: list[int] = instants[(instants > after) & (instants < until) & ~np.isin(instants, but)].tolist()
        return between

    def _span(self, first: int, last: int) -> str:
        window = self.query.window
        assert window is not None, "it was left out"
        if window.events:
            instants = self.history.instants
            number = int(np.searchsorted(instants, last) - np.searchsorted(instants, first)) + 1
            return f"spans {number} instants, limit {window.size}"
        span = f"spans {length(last - first)}, limit {length(window.size)}"
        return span if window.sliding else f"{span}, and windows begin at fixed times"


def _instants_text(between: list[int]) -> str:
    if len(between) == 1:
        return f"one instant comes before, {to_text(between[0])}"
    return f"{len(between)} instants come before, the first at {to_text(between[0])}"


def _named(condition: Expression) -> tuple[str, ...]:
    return tuple(sorted(v.value for v in expression_variables(condition)))
