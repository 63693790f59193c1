"""A story, played with a run and its dictionary, and told plainly by its definitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeAlias
from unittest.mock import patch

from failing_kb import FailingKb
from flow.by_graph import by_graph
from flow.lowering_strategies import GRAPHS
from loaded import load
from pyoxigraph import Literal, NamedNode, Store
from reference.rsp import Row, evaluate_rsp
from rsp_stories import Answers, Change, Event, Fails, Moves, Sorting, Story
from rsp_strategies import kb_store, triples

from oxiseq.engine.errors import KbError
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.rsp import schedule
from oxiseq.engine.rsp.plan import RspOptions, RspPlan, compile_rsp
from oxiseq.engine.run.rsp import RspRun
from oxiseq.engine.snapshot.saving import restore, save
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.rsp_algebra import Report, RspQuery
from oxiseq.languages.rsp.language import rsp_shape

Told: TypeAlias = tuple[int, Row]
"""The instant, and what is bound."""


class Player:
    """The story's query at work."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.store = kb_store(story.quads)
        self.kb = FailingKb(self.store)
        self.terms = TermDictionary(16)
        self.terms.blanks(story.blanks)
        self.plan = self._compiled()
        self.run = RspRun(self.plan, self.terms, self.kb, None, story.lateness)
        self.told: list[Told] = []
        self._arrived: list[Event] = []

    def _compiled(self) -> RspPlan:
        return compile_rsp(query_of(self.story.text), self.terms, RspOptions(Report(self.story.report)))

    def play(self) -> list[Told]:
        """All that is told."""
        for step in self.story.steps:
            self._take(step)
        self._push()
        self.run.close()
        self._answer()
        return self.told

    def _take(self, step: Any) -> None:
        match step:
            case Event(stream):
                if self._arrived and self._arrived[-1].stream != stream:
                    self._push()
                self._arrived.append(step)
            case Answers():
                self._push()
                self._answer()
            case Change(quads):
                self._push()
                self._retried(self.run.keep_answers)
                self.store.clear()
                self.store.extend(kb_store(quads))
                self.kb.touch()
            case Fails(number):
                self.kb.fails = number
            case Moves(blanks):
                self._push()
                self._move(blanks)

    def _push(self) -> None:
        """The events that have arrived, all of one stream, at once."""
        arrived, self._arrived = self._arrived, []
        if arrived and arrived[0].stream in self.plan.streams:
            graphs = [(event.time, triples(event.text)) for event in arrived]
            self.run.push(arrived[0].stream, encode_events(graphs, self.terms))
        for event in arrived:
            if event.punctual:
                for stream in self.plan.streams:
                    self.run.punctuate(stream, event.time)

    def _answer(self) -> None:
        shape = rsp_shape(self.plan, self.terms)
        for batch in self._retried(self.run.advance):
            for i in range(len(batch)):
                answer = shape.block([batch]).match(i)
                bound = {name: str(term) for name, term in answer.items() if term is not None}
                self.told.append((answer.at_us, tuple(sorted(bound.items()))))
        del shape
        self.terms.collect()
        for i in range(5):  # take the places of those that have been freed
            self.terms.intern(NamedNode(f"urn:other:{len(self.told)}:{i}"))

    def _retried(self, ask: Any) -> Any:
        try:
            return ask()
        except KbError:
            return ask()

    def _move(self, blanks: int) -> None:
        fails, self.kb.fails = self.kb.fails, 0
        data = save(self.run, self.terms)
        self.terms = TermDictionary(16)
        self.terms.blanks(blanks)
        for i in range(blanks):
            self.terms.constant(Literal(f"other {i}"))
        self.plan = self._compiled()
        self.kb = FailingKb(self.store)
        self.run = restore(data, self.plan, self.terms, self.kb)
        self.kb.fails = fails


def query_of(text: str) -> RspQuery:
    """A query."""
    query = load(text, "rspql")
    assert isinstance(query, RspQuery)
    return query


def played(story: Story) -> list[Told]:
    """All that is told. A query that tells changes never has to look at each of many ticks that are alike."""
    ticks = schedule.MOST_TICKS if story.report == "RSTREAM" else 2
    with patch.object(schedule, "MOST_TICKS", ticks):
        return Player(story).play()


# --- by the definitions ---------------------------------------------------------------------------


def expected(story: Story) -> list[Told]:
    """The same, everything anew at each instant; with the labels of blank nodes that the reference gives."""
    streams, kbs = _happened(story)
    query = query_of(story.whole if story.sorting.sliced else story.plain)
    query = by_graph(query, query.named_graphs or GRAPHS)

    def made(rows: list[Row]) -> Iterable[Row]:
        return sliced(story, rows)

    found = evaluate_rsp(
        query,
        streams,
        lambda at: [kb for place, kb in kbs if place < at][-1],
        report=Report(story.report),
        made=made if story.sorting.sliced else None,
    )
    now = ("now",) if story.now else ()
    return [(a.at, tuple(sorted([*_shown(story, a.row), *((name, time_of(a.at)) for name in now)]))) for a in found]


def _happened(story: Story) -> tuple[dict[str, list[tuple[int, Any]]], list[tuple[float, Store]]]:
    """By stream the events that are not late, as they arrived; when in stream time the KB changed, to what."""
    reads = query_of(story.plain).streams
    streams: dict[str, list[tuple[int, Any]]] = {iri: [] for iri in reads}
    before = dict.fromkeys(reads, -99)
    kbs = [(float("-inf"), kb_store(story.quads))]
    accepted = float("-inf")
    unpunctual: list[int] = []
    steps = list(story.steps)
    for i, step in enumerate(steps):
        if isinstance(step, Change):
            kbs.append((accepted, kb_store(step.quads)))
        if not isinstance(step, Event):
            continue
        if step.stream in reads and step.time >= before[step.stream]:
            streams[step.stream].append((step.time, triples(step.text)))
            accepted = max(accepted, step.time)
        if step.stream in reads:
            before[step.stream] = max(before[step.stream], step.time - story.lateness)
        unpunctual += [step.time] if step.punctual else []
        following = steps[i + 1] if i + 1 < len(steps) else None
        if not isinstance(following, Event) or following.stream != step.stream:
            for time in unpunctual:  # what is said of a batch is said behind it
                before = {iri: max(mark, time) for iri, mark in before.items()}
            unpunctual = []
    return streams, kbs


def _shown(story: Story, row: Row) -> list[tuple[str, str]]:
    of_template = story.shown if story.head.startswith("CONSTRUCT") else None
    return [(n, t) for n, t in row if of_template is None or n in of_template]


def time_of(at: int) -> str:
    """A time as a dateTime."""
    text = (datetime(1970, 1, 1) + timedelta(microseconds=at)).isoformat()
    return f'"{text.rstrip("0").rstrip(".") if "." in text else text}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'


def sliced(story: Story, rows: Sequence[Row]) -> list[Row]:
    """What a query tells of its solutions: projected, sorted, sliced."""
    shown = story.shown
    cut = [({n: t for n, t in row if n in shown}, dict(row)) for row in rows]
    if "DISTINCT" in story.head:
        cut = [(each, each) for each in {tuple(sorted(each.items())): each for each, _ in cut}.values()]
    for name in reversed(shown):
        cut.sort(key=lambda pair: rank(pair[0].get(name)))
    for name, down in reversed(story.sorting.keys):
        cut.sort(key=lambda pair: rank(pair[1].get(name)), reverse=down)
    stop = None if story.sorting.limit is None else story.sorting.offset + story.sorting.limit
    return [tuple(sorted(each.items())) for each, _ in cut[story.sorting.offset : stop]]


def rank(text: str | None) -> tuple[Any, ...]:
    """Where a term stands: unbound, blank nodes as they came, IRIs, numbers, texts."""
    if text is None:
        return (0,)
    if text[0] == "_":
        return 1, serial(text[2:])
    if text[0] == "<":
        return 2, text
    value = text.split('"')[1]
    return (3, int(value)) if text.endswith("integer>") else (4, value)


def serial(label: str) -> int:
    """As which blank node it came: of the engine's labels, or of the story's, which the reference has hidden."""
    if label[0] == "b":
        return int(label[1:])
    return int(bytes.fromhex(label[1:]).decode().rsplit("x", 1)[1])


# --- comparisons ----------------------------------------------------------------------------------


def without_labels(told: Iterable[Told]) -> Counter[Told]:
    """Labels of blank nodes mean nothing."""
    return Counter((at, tuple((n, "_:" if t[0] == "_" else t) for n, t in row)) for at, row in told)


def in_order(sorting: Sorting, told: Sequence[Told], shown: Iterable[str]) -> bool:
    """Whether rows of one instant come as they are to be sorted, as far as the columns show."""
    names = set(shown)
    keys = list[tuple[str, bool]]()
    for key in sorting.keys:
        if key[0] not in names:
            break
        keys.append(key)
    wanted = list(told)
    for name, down in reversed(keys):
        wanted.sort(key=lambda each: rank(dict(each[1]).get(name)), reverse=down)
    wanted.sort(key=lambda each: each[0])
    return all(
        at == other and all(rank(dict(row).get(name)) == rank(dict(wanted_row).get(name)) for name, _ in keys)
        for (at, row), (other, wanted_row) in zip(told, wanted, strict=True)
    )
