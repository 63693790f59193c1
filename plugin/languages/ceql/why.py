"""Why a CEQL query matches or does not: its steps are the places of the automaton.

    streams ─▶ events by position ─▶ the automaton with another last place, or without a condition ─▶ languages/reasons

A place counts the events that complete it, not the partial matches, which may be exponentially many. Of a query with
joins or GRAPH, which live keys run, the sequence is shown that it becomes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import NamedNode, Triple, Variable

from oxiseq.engine.cea.plan import Atom, CeaPlan, compile_ceql, words_of
from oxiseq.engine.cea.positions import bits
from oxiseq.engine.cea.term_marks import asked_of, faults_in, unfit
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import decode_events
from oxiseq.engine.events.faults import Faults
from oxiseq.engine.events.time import to_text
from oxiseq.engine.output.complex_events import ComplexEvents
from oxiseq.engine.plan.joined import JoinedPlan
from oxiseq.engine.run.sequence import run_of
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Expression, Limit
from oxiseq.grammar.ceql.texts import render_predicate, render_window
from oxiseq.grammar.ceql_algebra import AttributeWindow, CeqlQuery, Totals
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import conjuncts, expression_variables
from oxiseq.languages.ceql.shape import ceql_shape
from oxiseq.languages.reasons.read import FREE, Bounds, History, worked
from oxiseq.languages.reasons.report import Funnel, Near, Provenance, Source, Step, Wording, short
from oxiseq.languages.reasons.why import MOST, FoundRow, FoundRows, Subject, WhyCondition, WhyStep, length, passed
from oxiseq.languages.sequences.clauses import without_clauses
from oxiseq.languages.spaseq.why import SequenceSubject
from oxiseq.matches.match import Positions
from oxiseq.sources.knowledge import Kb, knowledge_of

# --- events ------------------------------------------------------------------------------------------


I64 = NDArray[np.int64]


def tuples_of(plan: CeaPlan, history: History) -> tuple[History, Faults]:
    """A history without the events that are no tuple events, and those."""
    return without_faults(plan.query.vocab or "", asked_of(plan), history)


def without_faults(vocab: str, asked: Sequence[Variable], history: History) -> tuple[History, Faults]:
    """The same where these attributes are needed."""
    faults, batches = Faults(), dict(history.batches)
    for iri, batch in history.batches.items():
        fault = faults_in(vocab, asked, batch, history.terms)
        if fault is not None:
            wrong = unfit(iri, batch.time, fault, asked)
            faults = faults.more(wrong)
            batches[iri] = batch.take(wrong.fit)
    return replace(history, batches=batches), faults


@dataclass(frozen=True, slots=True)
class Events:
    """All events by position: in order of time, then of FROM, then of arrival (semantics.md 3). `stream`: the number of
    each one's stream."""

    vocab: str
    history: History
    batch: EventBatch
    stream: I64

    @classmethod
    def of(cls, plan: CeaPlan, history: History) -> Events:
        """Those of a history."""
        parts = [history.batches[iri] for iri in dict.fromkeys(plan.streams)]
        whole = EventBatch.concat(parts)
        streams = [plan.streams.index(iri) for iri in dict.fromkeys(plan.streams)]
        number = np.repeat(streams, [len(part) for part in parts]).astype(np.int64)
        order = np.lexsort((number, whole.time))
        return cls(plan.query.vocab or "", history, whole.take(order), number[order])

    def time(self, position: int) -> int:
        """When the event at a position is (µs)."""
        return int(self.batch.time[position])

    def values(self, attributes: Sequence[str]) -> I64:
        """i64[n, attributes]: ids of terms, 0 for none."""
        batch, found = self.batch, np.zeros((len(self.batch), len(attributes)), np.int64)
        for column, attribute in enumerate(attributes):
            there = np.flatnonzero(batch.predicate == self.history.terms.constant(NamedNode(self.vocab + attribute)))
            found[np.searchsorted(batch.offset, there, "right") - 1, column] = batch.object[there]
        return found

    def named(self, attributes: Sequence[str], positions: Sequence[int]) -> list[Mapping[str, Term | None]]:
        """The values of attributes at positions, None for those that an event lacks."""
        term = self.history.terms.term
        rows = self.values(attributes)[np.array(positions, np.int64)].tolist()
        return [{a: term(i) if i else None for a, i in zip(attributes, row, strict=True)} for row in rows]

    def partition(self, by: Sequence[str], position: int) -> I64:
        """Which events are of the partition of the event at a position: their positions, ascending."""
        values = self.values(by)
        found: I64 = np.flatnonzero((values == values[position]).all(axis=1))
        return found

    def graph(self, position: int) -> tuple[Triple, ...]:
        """The triples of an event."""
        one = self.batch.slice(position, position + 1)
        return next((tuple(graph) for _, graph in decode_events(one, self.history.terms)), ())


# --- variants ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LetterPlace:
    """A letter of the automaton: `text` names it, no other has that name; `conditions` are all evaluated on one
    event. `after`: the letters that it may follow."""

    letter: int
    text: str
    type: str
    conditions: tuple[Expression, ...]
    after: tuple[int, ...]


def places(plan: CeaPlan) -> tuple[LetterPlace, ...]:
    """One per letter, in the formula's order."""
    vocab, positions = plan.query.vocab or "", plan.runner.positions
    found: list[LetterPlace] = []
    seen: set[str] = set()
    for n, letter in enumerate(positions.letters):
        names = sorted(letter.names - {letter.type})
        text = f"{letter.type} AS {', '.join(names)}" if names else letter.type
        if text in seen:
            text = f"{text} (place {n + 1})"
        seen.add(text)
        conditions = tuple(dict.fromkeys(c for p in letter.predicates for c in conjuncts(p)))
        leads = (m for m in range(len(positions.letters)) if (positions.at_once[m] | positions.later[m]) >> n & 1)
        found.append(LetterPlace(n, text, vocab + letter.type, conditions, tuple(leads)))
    return tuple(found)


def bare(plan: CeaPlan, limit: int) -> CeaPlan:
    """Without CONSUME BY and choosing strategies, at most `limit` for each completing event. STRICT stays, as does what
    SELECT keeps with it, since it is about these events; else all variables are kept, so that they can be shown."""
    query = replace(plan.query, consumption=None, limit=Limit(limit), order=None, sample=None)
    if not plan.runner.strict:
        query = replace(query, selection=None, columns=None)
    return recompiled(query, plan)


def recompiled(query: CeqlQuery, plan: CeaPlan) -> CeaPlan:
    """The plan of a variant of a plan's query."""
    return compile_ceql(query, dict(zip((s.name for s in plan.query.streams), plan.streams, strict=True)))


def ending_at(plan: CeaPlan, place: LetterPlace, *, alone: bool = False) -> CeaPlan:
    """With another last letter, which is `alone` or ends the formula as far as it leads there."""
    last = 1 << place.letter
    positions = replace(plan.runner.positions, last=last)
    positions = replace(positions, first=last) if alone else positions
    return replace(plan, runner=replace(plan.runner, positions=positions))


def with_conditions(plan: CeaPlan, place: LetterPlace, kept: tuple[Expression, ...]) -> CeaPlan:
    """A new atom for the letter, with these of its conditions."""
    letters = list(plan.runner.positions.letters)
    letters[place.letter] = replace(letters[place.letter], predicates=kept)
    atoms = [plan.letters[atom] for atom in plan.runner.atom_of]
    atoms[place.letter] = Atom(place.type, kept)
    numbers: dict[Atom, int] = {}
    atom_of = tuple(numbers.setdefault(atom, len(numbers)) for atom in atoms)
    positions = replace(plan.runner.positions, letters=tuple(letters))
    runner = replace(plan.runner, positions=positions, atom_of=atom_of, words=words_of(len(numbers)))
    return replace(plan, letters=tuple(numbers), runner=runner)


def conditions(plan: CeaPlan, place: LetterPlace) -> Iterator[WhyCondition]:
    """Those of a place, each left out of a `bare` plan that ends there."""
    for condition in _conditions(plan, place):
        yield replace(condition, variant=ending_at(condition.variant, place))


def _conditions(plan: CeaPlan, place: LetterPlace) -> Iterator[WhyCondition]:
    query, positions = plan.query, plan.runner.positions
    if query.window is not None and place.after:
        shown = (query.window.attribute.value,) if isinstance(query.window, AttributeWindow) else ()
        yield WhyCondition("window", render_window(query.window), recompiled(replace(query, window=None), plan), shown)
    if any(positions.at_once[m] >> place.letter & 1 for m in place.after):
        yield WhyCondition("contiguity", "`:`", _loosened(plan, place.letter))
    if plan.runner.strict and place.after:
        yield WhyCondition("strategy", "STRICT", recompiled(replace(query, selection=None), plan))
    if query.partition is not None:
        text = f"PARTITION BY {', '.join(f'[{a.value}]' for a in query.partition.by)}"
        loose = recompiled(replace(query, partition=None), plan)
        yield WhyCondition("partition", text, loose, names(query.partition.by))
    for condition in place.conditions:
        loose = with_conditions(plan, place, tuple(c for c in place.conditions if c != condition))
        read = names(expression_variables(condition))
        yield WhyCondition("filter", f"{place.text}[{render_predicate(condition)}]", loose, tuple(sorted(read)))


def _loosened(plan: CeaPlan, letter: int) -> CeaPlan:
    """`;` where `:` leads to the letter."""
    positions, bit = plan.runner.positions, 1 << letter
    later = tuple(late | (now & bit) for now, late in zip(positions.at_once, positions.later, strict=True))
    at_once = tuple(now & ~bit for now in positions.at_once)
    return replace(plan, runner=replace(plan.runner, positions=replace(positions, at_once=at_once, later=later)))


def names(attributes: Sequence[Variable] | frozenset[Variable]) -> tuple[str, ...]:
    return tuple(attribute.value for attribute in attributes)


# --- subject -----------------------------------------------------------------------------------------


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


# --- joined ------------------------------------------------------------------------------------------


def joined_subject(plan: JoinedPlan, history: History, kb: Kb, bounds: Bounds) -> SequenceSubject:
    """The sequence that the query is compiled to. Raises OxiseqError where two events have one time: those
    are one instant of a sequence, and two positions of CEQL."""
    history, faults = without_faults(plan.query.vocab or "", plan.runner.attributes, history)
    times: set[int] = set()
    for batch in history.batches.values():
        for time in batch.time.tolist():
            if time in times:
                needs = "why of a query with joins or GRAPH needs events at different times"
                raise OxiseqError(f"{needs}; two are at {to_text(time)}")
            times.add(time)
    found = SequenceSubject(plan.runner.translated, history, knowledge_of(kb), bounds)
    found.language, found.notes = plan.query.language, faults.lines
    return found
