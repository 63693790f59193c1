"""A SPAseq query as `why` sees it: its steps are the beginnings of the sequence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.time import to_text
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.plan.ranking import order_of
from oxiseq.engine.run.sequence import run_of
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import (
    Atom,
    BoundKind,
    Expression,
    Filter,
    Group,
    Limit,
    PatternElement,
    Query,
    Select,
    Summary,
    TriplePattern,
)
from oxiseq.grammar.levels import summarises
from oxiseq.grammar.places import overview, split_gpms
from oxiseq.grammar.render_sparql import SparqlWriter
from oxiseq.grammar.scope import GpmParts, expression_variables
from oxiseq.languages.reasons.bounds import FREE, Bounds
from oxiseq.languages.reasons.facts import facts_of
from oxiseq.languages.reasons.provenance import Provenance, Source
from oxiseq.languages.reasons.read import History, graph_of
from oxiseq.languages.reasons.report import SHOWN, Funnel, Near, Step, Wording
from oxiseq.languages.reasons.why import MOST, FoundRow, FoundRows, Subject, WhyCondition, WhyStep, length, passed
from oxiseq.languages.reasons.working import steps
from oxiseq.languages.sequences.clauses import without_clauses
from oxiseq.languages.spaseq.reasons.conditions import OfStep, conditions
from oxiseq.languages.spaseq.reasons.stages import beginnings, with_items
from oxiseq.languages.spaseq.shape import spaseq_shape
from oxiseq.matches.shape import Block


class SequenceSubject(Subject):
    """Matches of graph patterns in order."""

    wording = Wording("graph patterns", "sequence", "match", "matches")

    def __init__(self, query: Query, history: History, kb: KnowledgeBase, bounds: Bounds = FREE) -> None:
        self.query, self.history, self.kb, self.bounds = query, history, kb, bounds
        self.language, self.late = query.language, history.late

    def beginnings(self) -> Sequence[WhyStep]:
        each = list(beginnings(self.query))
        return [
            WhyStep(
                at.text,
                with_items(self.query, at.items),
                partial(conditions, self.query, at),
                (number - 1,) if number else (),
                at is each[-1],
            )
            for number, at in enumerate(each)
        ]

    def begun(self, variant: Query) -> FoundRows:
        return self._answers(variant)

    def whole(self, variant: Query | None = None) -> FoundRows:
        return self._answers(variant or self.query, as_is=True)

    def _answers(self, query: Query, *, as_is: bool = False) -> FoundRows:
        """Every match with all variables, up to `MOST` of one completing event; without the query's strategy, CONSUME
        BY and LIMIT unless `as_is`."""
        bare = _bare(query, MOST)
        if as_is:
            seen = overview(query)
            limit: Limit | None = Limit(MOST)
            summary = Summary()
            if not summarises(seen):
                limit = None if query.sample is not None else query.limit or limit
                summary = Summary(order_by=order_of(seen), report=query.summary.report)
            bare = replace(query, form=Select(None, False, query.selection), limit=limit, summary=summary)
        found: list[FoundRow] = []
        ends: Counter[int] = Counter()
        for block, times in self._blocks(bare):
            ends.update(times)
            for i in range(len(times)):
                if len(found) == self.bounds.matches:
                    return FoundRows(tuple(found), True)
                events = tuple(sorted((gpm, tuple(t for _, t in each)) for gpm, each in block.events(i).items()))
                own = [time for _, of in events for time in of]
                found.append(FoundRow(events, _values(block, i), (max(own) - min(own), max(own)), events))
        return FoundRows(tuple(found), any(count >= MOST for count in ends.values()))

    def _blocks(self, query: Query) -> Iterator[tuple[Block, list[int]]]:
        """Its matches as they are found, and when each ends."""
        plan = compile_query(query, self.history.terms)
        run = run_of(plan, self.history.terms, self.kb, self.history.start)
        shape = spaseq_shape(plan, self.history.terms)
        for part in chain.from_iterable(steps(run, plan.streams, self.history, self.bounds)):
            yield shape.block([part]), part.time.tolist()

    def clauses(self) -> Iterator[WhyCondition]:
        grouped = summarises(overview(self.query))  # then LIMIT leaves out groups
        return (each for each in without_clauses(self.query, MOST) if each.kind != "limit" or not grouped)

    def provenances(self, whole: FoundRows, most: int) -> Iterator[Provenance]:
        iris = {s.name: s.iri.value for s in self.query.streams}
        streams = {g.name: iris[g.stream] for g in self.query.gpms}
        patterns = {g.name: g.pattern for g in self.query.gpms}
        for each in whole.all[:most]:
            sources = tuple(
                Source(gpm, streams[gpm], time, graph_of(self.history, streams[gpm], time))
                for gpm, times in each.found
                for time in times
            )
            facts = (q for gpm, _ in each.found for q in facts_of(patterns[gpm], each.values, self.kb, default=False))
            yield Provenance(max(s.time for s in sources), each.values, sources, tuple(dict.fromkeys(facts)))

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
        before: dict[int, tuple[Block, int]] | list[int] = times
        elements = parts.pattern.elements
        plain = [e for e in elements if isinstance(e, TriplePattern)]
        for each in plain:
            there = self._alone(parts, (each,))
            before = [time for time in before if time in there]
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
            found = before if isinstance(before, dict) else {}
            yield passed(kind, text, before, now, partial(_mappings, found), test, shown)
            before = now

    def _alone(self, parts: GpmParts, elements: tuple[PatternElement, ...]) -> dict[int, tuple[Block, int]]:
        """The times of the events that a pattern matches, and one of its mappings there."""
        gpm = replace(parts.gpm, pattern=Group(elements))
        query = replace(_bare(self.query, 1), gpms=(gpm,), filters=(), window=None, partition=None)
        found: dict[int, tuple[Block, int]] = {}
        for block, times in self._blocks(with_items(query, ((None, Atom(gpm.name)),))):
            found |= {time: (block, i) for i, time in enumerate(times)}
        return found

    # --- near misses ----------------------------------------------------------------------------------

    def near(self, condition: WhyCondition, answer: FoundRow) -> Near:
        events = dict(answer.found)
        values = condition.read(answer) if condition.shown else {}
        return Near(events, values, self._against(condition, answer))

    def _against(self, condition: WhyCondition, answer: FoundRow) -> str:
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


def _bare(query: Query, most: int) -> Query:
    """All that it finds, up to so many matches of an end."""
    return replace(query, form=Select(None), limit=Limit(most), consumption=None, summary=Summary(), sample=None)


def _mappings(found: Mapping[int, tuple[Block, int]], times: Sequence[int]) -> list[Mapping[str, Term | None]]:
    """What a pattern binds in the events of these times."""
    return [_values(*found[time]) for time in times]


def _values(block: Block, index: int) -> dict[str, Term | None]:
    """All variables of a match."""
    return dict.fromkeys(block.shape.index) | block.row(index)


def _instants_text(between: list[int]) -> str:
    if len(between) == 1:
        return f"one instant comes before, {to_text(between[0])}"
    return f"{len(between)} instants come before, the first at {to_text(between[0])}"


def _named(condition: Expression) -> tuple[str, ...]:
    return tuple(sorted(v.value for v in expression_variables(condition)))
