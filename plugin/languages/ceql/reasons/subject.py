"""A CEQL query as `why` sees it: its steps are the places of the automaton.

As many are counted as events complete a place, not as there are partial matches, which may be exponentially many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from oxiseq.engine.cea.plan import CeaPlan, words_of
from oxiseq.engine.cea.positions import bits
from oxiseq.engine.events.time import to_text
from oxiseq.engine.output.complex_events import ComplexEvents
from oxiseq.engine.run.sequence import run_of
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Limit
from oxiseq.grammar.ceql.texts import render_predicate
from oxiseq.grammar.ceql_algebra import AttributeWindow, CeqlQuery, Totals
from oxiseq.grammar.scope import expression_variables
from oxiseq.languages.ceql.reasons.events import Events, tuples_of
from oxiseq.languages.ceql.reasons.variants import (
    LetterPlace,
    bare,
    conditions,
    ending_at,
    names,
    places,
    recompiled,
    with_conditions,
)
from oxiseq.languages.ceql.shape import ceql_shape
from oxiseq.languages.reasons.bounds import FREE, Bounds
from oxiseq.languages.reasons.provenance import Provenance, Source
from oxiseq.languages.reasons.read import History
from oxiseq.languages.reasons.report import Funnel, Near, Step, Wording
from oxiseq.languages.reasons.text import short
from oxiseq.languages.reasons.why import MOST, FoundRow, FoundRows, Subject, WhyCondition, WhyStep, length, passed
from oxiseq.languages.reasons.working import worked
from oxiseq.languages.sequences.clauses import without_clauses
from oxiseq.matches.match import Positions

FEW: Final = 32
"""Complex events of one completing event among which the nearest are looked for."""


class TupleSubject(Subject):
    """Complex events of a history that is read with `rows_opener`; where aggregates are emitted, those that these run
    over."""

    language = "ceql"
    wording = Wording("events of the formula", "automaton", "event", "events", " completed by", "")

    def __init__(self, plan: CeaPlan, history: History, bounds: Bounds = FREE) -> None:
        self.history, faults = tuples_of(plan, history)
        self.late, self.bounds, self.notes = history.late, bounds, faults.lines
        if plan.query.totals is not None:
            self.notes = (*self.notes, self._totals(plan, plan.query.totals))
            plan = recompiled(replace(plan.query, totals=None), plan)
        self.plan, self.query = plan, plan.query
        self.events = Events.of(plan, self.history)
        self.places = places(plan)

    def _totals(self, plan: CeaPlan, totals: Totals) -> str:
        """How many rows there are, and how many HAVING leaves."""
        every = recompiled(replace(plan.query, totals=replace(totals, having=None)), plan)
        rows, left = (sum(map(len, self._worked(each, None)[0])) for each in (every, plan))
        having = "" if totals.having is None else f", of which HAVING {render_predicate(totals.having)} leaves {left:,}"
        return f"complex events end at {rows:,} event{'s' * (rows != 1)}{having}; below, each of them is examined"

    def beginnings(self) -> Sequence[WhyStep]:
        first, last = (set(bits(part)) for part in (self.plan.runner.positions.first, self.plan.runner.positions.last))
        strict, loose = bare(self.plan, 1), bare(self.plan, FEW)
        return [
            WhyStep(
                place.text,
                ending_at(strict, place),
                partial(conditions, loose, place),
                () if place.letter in first else place.after,
                place.letter in last,
            )
            for place in self.places
        ]

    def begun(self, variant: CeaPlan) -> FoundRows:
        """For each completing event the shortest complex event that was found."""
        found, _ = self._ran(variant, self.bounds.matches)
        best: dict[object, FoundRow] = {}
        for each in found:
            if each.key not in best or each.rank < best[each.key].rank:
                best[each.key] = each
        return FoundRows(tuple(best.values()))

    def whole(self, variant: CeqlQuery | None = None) -> FoundRows:
        query = self.query if variant is None else variant
        counted = query if query.limit is not None else replace(query, limit=Limit(MOST))
        found, cut = self._ran(recompiled(counted, self.plan), self.bounds.matches)
        most = max(Counter(each.rank[1] for each in found).values(), default=0)
        more = cut or (most >= MOST and (variant is not None or query.limit is None))
        return FoundRows(tuple(replace(each, key=_identity(each.found)) for each in found), more)

    def clauses(self) -> Iterator[WhyCondition]:
        for each in without_clauses(self.query, MOST):
            if each.kind == "limit":  # the order of all that it leaves out may be too much to find
                each = replace(each, variant=replace(each.variant, order=None))
            yield each

    def _worked(self, plan: CeaPlan, most: int | None) -> tuple[list[ComplexEvents], bool]:
        return worked(run_of(plan, self.history.terms), plan.streams, self.history, self.bounds, most)

    def _ran(self, plan: CeaPlan, most: int | None) -> tuple[list[FoundRow], bool]:
        """What a plan without aggregates finds, `most` at most, and whether there may be more; the key is the position
        of the completing event."""
        found, cut = self._found(plan, most)
        block = ceql_shape(plan, self.history.terms).block([found])
        answers = []
        for number, (end, low, high) in enumerate(zip(found.end.tolist(), found.ends, found.ends[1:], strict=False)):
            began = found.event_time[low] if low < high else found.time[number]
            answers.append(FoundRow(end, {}, (int(found.time[number] - began), end), partial(block.places, number)))
        return answers, cut

    def _found(self, plan: CeaPlan, most: int | None) -> tuple[ComplexEvents, bool]:
        batches, cut = self._worked(plan, most)
        return ComplexEvents.concat(batches, words_of(len(plan.runner.variables))), cut

    def provenances(self, whole: FoundRows, most: int) -> Iterator[Provenance]:
        """The events of the first complex events, each under all variables that hold it."""
        for answer in whole.all[:most]:
            match: Positions = answer.found()
            held = self._held(match)
            sources = tuple(
                Source(
                    ", ".join(name for name, of in held.items() if p in of),
                    self.plan.streams[self.events.stream[p]],
                    self.events.time(p),
                    self.events.graph(p),
                    p,
                )
                for p in match.all
            )
            yield Provenance(self.events.time(answer.rank[1]), {}, sources, ())

    # --- each event of the formula by itself ----------------------------------------------------------

    def patterns(self) -> Iterator[Funnel]:
        streams = ", ".join(s.name for s in self.query.streams)
        loose = bare(self.plan, 1)
        for place in self.places:
            alone = ending_at(loose, place, alone=True)
            yield Funnel(place.text, streams, len(self.events.batch), tuple(self._parts(alone, place)))

    def _parts(self, plan: CeaPlan, place: LetterPlace) -> Iterator[Step]:
        before: list[int] = []
        for number, condition in enumerate((None, *place.conditions)):
            found, _ = self._found(with_conditions(plan, place, place.conditions[:number]), None)
            ends = dict.fromkeys(sorted(found.end.tolist()))
            if condition is None:
                yield Step("type", f"the type {place.text.partition(' ')[0]}", len(ends))
            else:
                read = tuple(sorted(names(expression_variables(condition))))
                values, text = partial(self.events.named, read), render_predicate(condition)
                yield passed("filter", text, before, ends, values, condition, read, self.events.time)
            before = list(ends)

    # --- near misses ----------------------------------------------------------------------------------

    def near(self, condition: WhyCondition, answer: FoundRow) -> Near:
        match, words, values = answer.found(), "", dict[str, Term | None]()
        if condition.kind == "filter":
            values = dict(self.events.named(condition.shown, [match.last])[0])
        elif condition.kind == "window":
            words = self._span(match)
        elif condition.kind == "contiguity":
            words = self._between(match)
        elif condition.kind == "partition":
            each = self.events.named(condition.shown, match.all)
            told = (f"[{a}] is {', '.join(dict.fromkeys(_text(of[a]) for of in each))}" for a in condition.shown)
            words = "; ".join(told)
        times = {name: tuple(map(self.events.time, of)) for name, of in self._held(match).items()}
        return Near(times, values, words)

    def _held(self, match: Positions) -> Mapping[str, tuple[int, ...]]:
        """Variable → positions; a type's name is left out where names given by AS hold all that it holds."""
        types = {letter.type for letter in self.plan.runner.positions.letters}
        named = {p for name, positions in match.by.items() if name not in types for p in positions}
        return {name: of for name, of in match.by.items() if name not in types or not set(of) <= named}

    def _mine(self, match: Positions) -> list[int]:
        """The events of the match's partition, from its first to its last."""
        by = () if self.query.partition is None else names(self.query.partition.by)
        mine = self.events.partition(by, match.last)
        found: list[int] = mine[(mine >= match.first) & (mine <= match.last)].tolist()
        return found

    def _span(self, match: Positions) -> str:
        window = self.query.window
        assert window is not None, "it was left out"
        if isinstance(window, AttributeWindow):
            name = window.attribute.value
            first, last = (_text(of[name]) for of in self.events.named((name,), (match.first, match.last)))
            return f"{name} goes from {first} to {last}, limit {window.size.value}"
        if window.events:
            return f"spans {len(self._mine(match)) - 1} events after the first, limit {window.size}"
        span = self.events.time(match.last) - self.events.time(match.first)
        return f"spans {length(span)}, limit {length(window.size)}"

    def _between(self, match: Positions) -> str:
        """The events between the completing event and the one before."""
        before = max((p for p in match.all if p < match.last), default=match.last)
        gap = [p for p in self._mine(match) if before < p < match.last]
        if not gap:
            return ""
        number = "an event comes" if len(gap) == 1 else f"{len(gap)} events come"
        return f"{number} between, at {to_text(self.events.time(gap[0]))}{' first' if len(gap) > 1 else ''}"


def _identity(found: partial[Positions]) -> tuple[object, ...]:
    """What distinguishes a complex event."""
    match = found()
    return match.first, match.last, match.all


def _text(term: Term | None) -> str:
    return "missing" if term is None else short(term)
