"""Ways to answer a query over a window: incrementally, and by asking again.

    incremental   the engine's push of coded batches: new rows, or ended ones
    again         the engine's own full answer at every instant
    whole         pyoxigraph: a store follows the window's summary, the whole query is asked after each event that added
                  to it
    delta         pyoxigraph at its best for new rows: the query is asked with the added triple put in at each position
    rdflib        like `whole`
    evaluated     pyoxigraph, for windows that tumble: the query is asked of each window once

Outside the clock on all sides: coding terms, making quads and texts, and for the stores finding out what an event adds
to the summary (the triples that agree with some pattern's constants) and what leaves it.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import process_time
from typing import Final

import numpy as np
import rdflib
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Store, Variable
from rdflib.plugins.sparql import prepareQuery

from benchmarks.spectra.queries import PREFIXES, WindowQuery
from benchmarks.spectra.streams import Stream, batch
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.window import Window
from oxiseq.grammar import load
from oxiseq.grammar.algebra import TriplePattern
from oxiseq.grammar.rsp_algebra import Report
from oxiseq.languages.registry import language_for
from oxiseq.options import Options

NEW, ENDED, AGAIN, WHOLE, DELTA, RDFLIB = "new", "ended", "again", "whole", "delta", "rdflib"
EVALUATED: Final = "each window once"
STRETCH: Final = 20_000
"""Triples of one timed push."""
_STREAM: Final = "urn:s"
_SHORTEST: Final = 1e-6
"""Seconds: the clock may not have moved."""
Term = NamedNode | Literal | BlankNode
Triple = tuple[Term, Term, Term]


@dataclass(frozen=True, slots=True)
class Setting:
    """A window of `triples` triples over events of `size`; tumbling, or sliding by one event."""

    triples: int
    size: int
    tumbling: bool

    @property
    def window(self) -> Window:
        """As the engine takes it: in events."""
        events = self.triples // self.size
        return Window(events, events if self.tumbling else 1, counted=True)


@dataclass(frozen=True, slots=True)
class Rate:
    """Triples of the raw stream per second of CPU time, and how many rows the full answer has at the end, after
    `events` events."""

    rate: float
    rows: int
    events: int


class Coded:
    """A stream in a dictionary, as ids and as pyoxigraph's terms."""

    def __init__(self, stream: Stream) -> None:
        self.dictionary = TermDictionary()
        self.ids = stream.coded(self.dictionary)
        self.columns = stream.columns
        self._texts = stream.texts
        self._terms: dict[int, Term] = {}

    def term(self, number: int) -> Term:
        """A term by its number in the stream."""
        known = self._terms.get(number)
        if known is None:
            known = self.dictionary.term(self.dictionary.intern_written(self._texts[number].encode()))
            assert isinstance(known, (NamedNode, Literal))
            self._terms[number] = known
        return known


class Running:
    """A query at work, as it takes events of a stream. report: what it emits."""

    def __init__(self, query: WindowQuery, coded: Coded, window: Window, report: Report) -> None:
        within = f"RANGE {window.range} EVENTS SLIDE {window.slide} EVENTS"
        parsed = load(
            f"{PREFIXES}REGISTER {report.value} <urn:told> AS SELECT * FROM STREAM <{_STREAM}> [{within}] "
            f"WHERE {{ {query.body} }}",
            "rspql",
        )
        self._run, _ = language_for(parsed).compile(parsed, coded.dictionary, StoreKb(Store()), Options())
        self.rows = 0
        """Emitted so far."""

    def push(self, events: EventBatch) -> int:
        """How many rows it emits; no other events have these times."""
        self._run.push(_STREAM, events)
        self._run.settle()
        emitted = sum(map(len, self._run.advance()))
        self.rows += emitted
        return emitted


def incremental(query: WindowQuery, coded: Coded, settings: Sequence[Setting], triples: int) -> list[dict[str, Rate]]:
    """New rows, and ended ones, of every setting: measured in turns, over `triples` triples after a full window, or a
    whole window if that is more and it tumbles. Growth from window to window is then no affair of what else the machine
    does."""
    ways = [(s, report) for s in settings for report in (Report.ISTREAM, Report.DSTREAM)]
    runs = [filled(query, coded, s, report) for s, report in ways]
    most = [max(triples, s.triples if s.tumbling else 0) for s, _ in ways]
    seconds: list[list[float]] = [[] for _ in runs]
    for done in range(0, max(most), STRETCH):
        for (setting, _), run, spent, end in zip(ways, runs, seconds, most, strict=True):
            if done < end:
                first = setting.triples + done
                events = batch(coded.ids, first, first + STRETCH, setting.size)
                begun = process_time()
                run.push(events)
                spent.append(process_time() - begun)
    found: list[dict[str, Rate]] = []
    for i, setting in enumerate(settings):
        new, ended = runs[2 * i : 2 * i + 2]
        rates = {}
        for name, spent in ((NEW, seconds[2 * i]), (ENDED, seconds[2 * i + 1])):
            middle = sum(spent) / len(spent) if setting.tumbling else median(spent)
            rates[name] = Rate(STRETCH / middle, new.rows - ended.rows, len(spent) * STRETCH // setting.size)
        found.append(rates)
    return found


def again(query: WindowQuery, coded: Coded, setting: Setting, budget: float) -> dict[str, Rate]:
    """The full answer at every event, for `budget` seconds."""
    run = filled(query, coded, setting, Report.RSTREAM)
    spent, events, first, together = 0.0, 0, setting.triples, 1
    while spent < budget and first + together * setting.size <= coded.ids.shape[1]:
        some = batch(coded.ids, first, first + together * setting.size, setting.size)
        begun = process_time()
        run.push(some)
        spent += process_time() - begun
        first, events = first + together * setting.size, events + together
        together = min(2 * together, 64) if spent < budget / 4 else together
    return {AGAIN: Rate(events * setting.size / spent, rows_after(query, coded, setting, events), events)}


def rows_after(query: WindowQuery, coded: Coded, setting: Setting, events: int) -> int:
    """How many rows the full answer has so many events after a full window, by the engine."""
    new, ended = (filled(query, coded, setting, report) for report in (Report.ISTREAM, Report.DSTREAM))
    last = setting.triples + events * setting.size
    if events:
        for run in (new, ended):
            run.push(batch(coded.ids, setting.triples, last, setting.size))
    return new.rows - ended.rows


def filled(query: WindowQuery, coded: Coded, setting: Setting, report: Report) -> Running:
    """A run that has seen a window full."""
    run = Running(query, coded, setting.window, report)
    run.push(batch(coded.ids, 0, setting.triples, setting.size))
    return run


# --- stores ------------------------------------------------------------------------------------------


class Summary:
    """The triples in a window that agree with some pattern, event by event."""

    def __init__(self, query: WindowQuery, coded: Coded, setting: Setting) -> None:
        self._coded, self._setting = coded, setting
        self.patterns = query.patterns
        self.relevant = self._agreeing()
        self._alive: OrderedDict[tuple[int, int, int], int] = OrderedDict()
        self._event = 0

    def _agreeing(self) -> NDArray[np.bool_]:
        terms, ids = self._coded.dictionary, self._coded.ids
        relevant = np.zeros(ids.shape[1], np.bool_)
        for pattern in self.patterns:
            agrees = np.ones(ids.shape[1], np.bool_)
            for column, term in zip(ids, (pattern.subject, pattern.predicate, pattern.object), strict=True):
                if not isinstance(term, Variable):
                    agrees &= column == terms.constant(term)
            relevant |= agrees
        return relevant

    def step(self) -> tuple[list[Triple], list[Triple]]:
        """The next event: what is new in the summary, and what leaves it."""
        self._event += 1
        size, window = self._setting.size, self._setting.window
        assert window.range is not None
        low = -(-self._event // window.slide) * window.slide - window.range
        first = (self._event - 1) * size
        added = []
        for i in range(first, first + size):
            if self.relevant[i]:
                key = tuple(self._coded.columns[:, i].tolist())
                if key not in self._alive:
                    added.append(key)
                self._alive[key] = self._event
                self._alive.move_to_end(key)
        removed = []
        while self._alive and next(iter(self._alive.values())) <= low:
            removed.append(self._alive.popitem(last=False)[0])
        return [self.decoded(t) for t in added], [self.decoded(t) for t in removed]

    def filled(self) -> list[Triple]:
        """What is there once the window is full, in order of the last event that holds it."""
        size, last = self._setting.size, self._setting.triples
        self._event = last // size
        places = np.flatnonzero(self.relevant[:last])
        columns = self._coded.columns[:, places]
        code = (columns[0] << 42) | (columns[1] << 21) | columns[2]
        _, backwards = np.unique(code[::-1], return_index=True)
        kept = np.sort(len(code) - 1 - backwards)
        events = (places[kept] // size + 1).tolist()
        keys = zip(*(column.tolist() for column in columns[:, kept]), strict=True)
        self._alive = OrderedDict(zip(keys, events, strict=True))
        return [self.decoded(t) for t in self._alive]

    def decoded(self, numbers: tuple[int, ...]) -> Triple:
        s, p, o = (self._coded.term(number) for number in numbers)
        return s, p, o


def stores(query: WindowQuery, coded: Coded, setting: Setting, budget: float) -> dict[str, Rate]:
    """pyoxigraph: the query with each added triple at each of its positions, then the whole query, over events that
    follow each other."""
    summary, store = Summary(query, coded, setting), Store()
    store.extend(map(_quad, summary.filled()))
    stream, found, done = _events(summary, coded, setting), {}, 0
    for name in (DELTA, WHOLE):
        spent, events = 0.0, 0
        for added, removed in stream:
            new, old = [_quad(t) for t in added], [_quad(t) for t in removed]
            texts = [query.text] if added else []
            if name == DELTA:
                texts = [text for t in added for text in substituted(query, summary.patterns, t)]
            begun = process_time()
            if new:
                store.extend(new)
            for quad in old:
                store.remove(quad)
            for text in texts:
                for _ in store.query(text):  # type: ignore[union-attr]  # SELECT gives rows
                    pass
            spent, events = spent + process_time() - begun, events + 1
            if spent > budget:
                break
        done += events
        rows = sum(1 for _ in store.query(query.text))  # type: ignore[union-attr, misc]  # as above
        found[name] = Rate(events * setting.size / max(spent, _SHORTEST), rows, done)
    return found


def evaluated(query: WindowQuery, coded: Coded, setting: Setting, budget: float) -> dict[str, Rate]:
    """pyoxigraph, once per tumbling window: the window's summary is loaded into an empty store, and the query asked. As
    many windows as the budget allows, and `rows` of the first."""
    summary, spent, windows, rows = Summary(query, coded, setting), 0.0, 0, 0
    while spent < budget and (windows + 1) * setting.triples <= coded.ids.shape[1]:
        first = windows * setting.triples
        places = first + np.flatnonzero(summary.relevant[first : first + setting.triples])
        numbers = dict.fromkeys(zip(*coded.columns[:, places].tolist(), strict=True))
        quads = [_quad(summary.decoded(triple)) for triple in numbers]
        begun = process_time()
        store = Store()
        store.extend(quads)
        found = sum(1 for _ in store.query(query.text))  # type: ignore[union-attr, misc]  # SELECT gives rows
        spent, windows = spent + process_time() - begun, windows + 1
        rows = found if windows == 1 else rows
    return {EVALUATED: Rate(windows * setting.triples / max(spent, _SHORTEST), rows, 0)}


def by_rdflib(query: WindowQuery, coded: Coded, setting: Setting, budget: float) -> dict[str, Rate]:
    """rdflib, the whole query again, parsed once."""
    summary, graph = Summary(query, coded, setting), rdflib.Graph()
    for triple in summary.filled():
        graph.add(_of_rdflib(triple))
    prepared = prepareQuery(query.text)
    spent, events = 0.0, 0
    for added, removed in _events(summary, coded, setting):
        new, old = [_of_rdflib(t) for t in added], [_of_rdflib(t) for t in removed]
        begun = process_time()
        for triple in new:
            graph.add(triple)
        for triple in old:
            graph.remove(triple)
        if new:
            for _ in graph.query(prepared):
                pass
        spent, events = spent + process_time() - begun, events + 1
        if spent > budget:
            break
    return {RDFLIB: Rate(events * setting.size / spent, len(graph.query(prepared)), events)}


def _events(summary: Summary, coded: Coded, setting: Setting) -> Iterator[tuple[list[Triple], list[Triple]]]:
    """The events after a full window."""
    for _ in range((coded.ids.shape[1] - setting.triples) // setting.size):
        yield summary.step()


def _quad(triple: Triple) -> Quad:
    return Quad(*triple)  # type: ignore[arg-type]  # terms at their places


def _of_rdflib(triple: Triple) -> tuple[rdflib.term.Node, rdflib.term.Node, rdflib.term.Node]:
    s, p, o = (
        rdflib.URIRef(t.value)
        if isinstance(t, NamedNode)
        else rdflib.Literal(t.value, datatype=rdflib.URIRef(t.datatype.value))
        if isinstance(t, Literal)
        else rdflib.BNode(t.value)
        for t in triple
    )
    return s, p, o


def substituted(query: WindowQuery, patterns: tuple[TriplePattern, ...], triple: Triple) -> Iterator[str]:
    """The query's texts with a triple in the place of each pattern that it agrees with."""
    for pattern in patterns:
        bound: dict[str, Term] = {}
        for asked, given in zip((pattern.subject, pattern.predicate, pattern.object), triple, strict=True):
            if isinstance(asked, Variable):
                if bound.setdefault(asked.value, given) != given:
                    break
            elif asked != given:
                break
        else:
            yield _put_in(query.text, bound)


def _put_in(text: str, bound: Mapping[str, Term]) -> str:
    head, body = text.split("{", 1)
    return head + "{" + re.sub(r"\?(\w+)", lambda m: str(bound.get(m[1], m[0])), body)
