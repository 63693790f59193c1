"""The kept events as an RDF dataset: what it says is what the log holds, whatever has come and gone."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from live_events import BEGIN, DOORS, EX, POWER, event, power

from oxiseq.engine.events.time import to_text
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.journal import Journal, Retention, UnknownError
from oxiseq.live.graphs import EventGraphs
from oxiseq.live.intake import read_batch
from oxiseq.live.settings import HOUR, BoundError

ALL = "SELECT ?e ?s ?p ?o { GRAPH ?e { ?s ?p ?o } }"
TIMES = "SELECT ?e ?t { ?e <http://www.w3.org/ns/prov#generatedAtTime> ?t }"
STREAMS = "SELECT ?e ?s { ?e <urn:oxiseq:stream> ?s }"


class Clock:
    """A time that is set by hand, in µs."""

    def __init__(self) -> None:
        self.now = BEGIN

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def journal(tmp_path: Path, clock: Clock) -> Iterator[Journal]:
    with Journal(tmp_path / "journal.oxiseq", "normal", clock=clock) as opened:
        opened.streams.create(POWER)
        yield opened


def graphs_of(journal: Journal, most: int = 1_000_000, unasked: float = 600) -> EventGraphs:
    return EventGraphs(journal, most, unasked)


def append(journal: Journal, text: str, stream: str = POWER) -> None:
    journal.log.append(stream, read_batch(text.encode(), "nquads").blob)


def rows(graphs: EventGraphs, query: str, stream: str = POWER) -> list[tuple[str, ...]]:
    (solutions,) = graphs.query(stream, [query], "http://base/")
    return sorted(tuple("_:b" if str(term)[0] == "_" else str(term) for term in solution) for solution in solutions)


def name(offset: int, stream: str = POWER) -> str:
    return f"<urn:oxiseq:event:{quote(stream, safe='')}:{offset}>"


def check_same_as_log(graphs: EventGraphs, journal: Journal, stream: str = POWER) -> None:
    """Graphs, times and streams are those of the events in the log, under their offsets."""
    terms = TermDictionary()
    triples, times = [], []
    for logged in journal.log.read(stream, terms):
        for at, offset in enumerate(logged.offset.tolist()):
            one = logged.batch.slice(at, at + 1)
            times.append((name(offset, stream), to_text(int(one.time[0]))))
            for ids in zip(*(column.tolist() for column in one.ids), strict=True):
                texts = [terms.text(each) for each in ids]
                triples.append((name(offset, stream), *("_:b" if text[0] == "_" else text for text in texts)))
    assert rows(graphs, ALL, stream) == sorted(triples)
    told = rows(graphs, TIMES, stream)
    assert told == sorted((e, f'"{t}"^^<http://www.w3.org/2001/XMLSchema#dateTime>') for e, t in times)
    assert rows(graphs, STREAMS, stream) == sorted((e, f"<{stream}>") for e, _ in times)
    assert rows(graphs, "SELECT ?e { GRAPH ?e {} }", stream) == sorted((e,) for e, _ in times)


def test_each_event_is_a_graph_with_its_time_and_stream(journal: Journal) -> None:
    append(journal, power(1, BEGIN, 1, 100) + power(2, BEGIN + 500_000, 2, 300))
    append(journal, event("empty", BEGIN + 1_000_000, "").partition("\n")[0].replace(" .", f" <{EX}empty> ."))
    graphs = graphs_of(journal)
    check_same_as_log(graphs, journal)
    assert (name(1), '"2024-05-01T10:00:00.5Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>') in rows(graphs, TIMES)
    assert len(rows(graphs, TIMES)) == 3
    assert rows(graphs, f"SELECT ?w {{ GRAPH {name(1)} {{ ?h <{EX}watts> ?w }} }}") == [
        ('"300"^^<http://www.w3.org/2001/XMLSchema#integer>',)
    ]


def test_blank_nodes_are_their_events_own(journal: Journal) -> None:
    both = f"_:x <{EX}a> <{EX}g> <{EX}e{{0}}> .\n_:x <{EX}b> _:y <{EX}e{{0}}> .\n"
    append(journal, "".join(event(f"e{i}", BEGIN + i, f"_:x <{EX}n> _:y") + both.format(i) for i in (1, 2)))
    graphs = graphs_of(journal)
    assert len(rows(graphs, f"SELECT * {{ GRAPH ?e {{ ?x <{EX}a> ?g ; <{EX}n> ?y ; <{EX}b> ?y }} }}")) == 2
    across = f"SELECT * {{ GRAPH ?e {{ ?x <{EX}a> ?g }} GRAPH ?f {{ ?x <{EX}b> ?y }} FILTER(?e != ?f) }}"
    assert rows(graphs, across) == []
    append(journal, event("e1", BEGIN + 3, f"_:x <{EX}b> _:y"))
    assert rows(graphs, across) == []


def test_what_retention_deletes_is_gone_and_not_earlier(journal: Journal, clock: Clock) -> None:
    graphs = graphs_of(journal)
    journal.streams.create(POWER, Retention(HOUR))
    for number in range(4):
        append(journal, power(number, BEGIN - number, number, 1))  # their own times do not matter
        clock.now += HOUR // 4
    check_same_as_log(graphs, journal)
    assert len(rows(graphs, TIMES)) == 4
    clock.now += HOUR // 4 + 1
    assert len(rows(graphs, TIMES)) == 4
    journal.retain()
    assert [e for e, _ in rows(graphs, TIMES)] == [name(2), name(3)]
    journal.streams.create(POWER, Retention(count=1))
    journal.retain()
    check_same_as_log(graphs, journal)
    assert [e for e, _ in rows(graphs, TIMES)] == [name(3)]


@pytest.mark.parametrize("seed", range(6))
def test_any_history_of_pushes_retention_and_restarts(tmp_path: Path, seed: int, clock: Clock) -> None:
    drawn = random.Random(seed)
    path, number = tmp_path / "journal.oxiseq", 0
    for _ in range(3):
        with Journal(path, "normal", clock=clock) as journal:
            graphs = graphs_of(journal)
            for stream in (POWER, DOORS):
                journal.streams.create(stream, Retention(count=drawn.choice([0, 5, 40])))
            for _ in range(40):
                stream = drawn.choice([POWER, DOORS])
                action = drawn.random()
                if action < 0.6:
                    made = [
                        event(f"e{number + i}", BEGIN + i, f"_:b{i} <{EX}p{i % 3}> <{EX}o{number}>")
                        for i in range(drawn.randint(1, 12))
                    ]
                    number += len(made)
                    append(journal, "".join(made), stream)
                elif action < 0.75:
                    journal.retain()
                elif action < 0.8:
                    journal.streams.delete(stream)
                    clock.now += 1
                    journal.streams.create(stream, Retention(count=20))
                elif action < 0.85:
                    journal.log.advance(stream, BEGIN)
                else:
                    check_same_as_log(graphs, journal, stream)
            check_same_as_log(graphs, journal, POWER)
            check_same_as_log(graphs, journal, DOORS)


def test_more_events_than_are_taken_over_at_a_time(journal: Journal) -> None:
    graphs = graphs_of(journal)
    append(journal, "".join(power(i, BEGIN + i, i % 7, i) for i in range(10_000)))
    check_same_as_log(graphs, journal)
    assert graphs.size == 30_000


def test_an_answer_is_of_one_moment(journal: Journal) -> None:
    graphs = graphs_of(journal)
    append(journal, "".join(power(i, BEGIN + i, 1, i) for i in range(50)))
    first, second = graphs.query(POWER, [ALL, TIMES], "http://base/")
    assert len([next(first), next(second)]) == 2
    append(journal, "".join(power(i, BEGIN + i, 1, i) for i in range(50, 80)))
    journal.streams.create(POWER, Retention(count=1))
    journal.retain()
    assert len(rows(graphs, ALL)) == 30  # whole batches are deleted
    assert len(list(first)) == len(list(second)) == 49


def test_a_long_question_keeps_no_other_waiting(journal: Journal) -> None:
    graphs = graphs_of(journal)
    append(journal, "".join(power(i, BEGIN + i, 1, i) for i in range(120)))
    pairs = " ".join(f"GRAPH ?e{i} {{ ?s{i} ?p{i} ?o{i} }}" for i in range(3))
    slow = f"SELECT (COUNT(*) AS ?n) {{ {pairs} }}"  # counted before the first row is asked for
    begun = threading.Event()
    found: list[list[tuple[str, ...]]] = []

    def ask() -> None:
        begun.set()
        found.append(rows(graphs, slow))

    thread = threading.Thread(target=ask)
    thread.start()
    begun.wait()
    meanwhile = 0
    while not found:
        append(journal, power(1, BEGIN, 1, 100))
        check_same_as_log(graphs, journal)
        meanwhile += not found
    thread.join()
    assert meanwhile > 2
    counted = int(found[0][0][0].split('"')[1])
    assert counted in [events**3 for events in range(120, 130)]  # one moment's


def test_nothing_is_held_of_what_nobody_asks(journal: Journal) -> None:
    graphs = graphs_of(journal, unasked=0)
    append(journal, power(1, BEGIN, 1, 100))
    assert graphs.size == 0
    check_same_as_log(graphs, journal)
    assert graphs.size == 3
    graphs.let_go()
    assert graphs.size == 0
    check_same_as_log(graphs, journal)


def test_a_bound_for_all_streams_together(journal: Journal) -> None:
    journal.streams.create(DOORS)
    graphs = graphs_of(journal, most=40)
    for stream in (POWER, DOORS):
        append(journal, "".join(event(f"e{i}", BEGIN + i, f"<{EX}a> <{EX}b> <{EX}c>") for i in range(10)), stream)
    check_same_as_log(graphs, journal, POWER)
    assert graphs.size == 30
    check_same_as_log(graphs, journal, DOORS)  # the other one has made room
    assert graphs.size == 30
    append(journal, "".join(power(i, BEGIN + i, 1, i) for i in range(10)))
    with pytest.raises(BoundError, match="more than 40 triples"):
        graphs.query(POWER, [ALL], "http://base/")
    journal.streams.create(POWER, Retention(count=5))
    journal.retain()
    check_same_as_log(graphs, journal)


def test_a_stream_that_is_not_there(journal: Journal) -> None:
    graphs = graphs_of(journal)
    with pytest.raises(UnknownError):
        graphs.query(DOORS, [ALL], "http://base/")
    append(journal, power(1, BEGIN, 1, 100))
    assert len(rows(graphs, ALL)) == 1
    journal.streams.delete(POWER)
    with pytest.raises(UnknownError):
        graphs.query(POWER, [ALL], "http://base/")


def test_a_question_that_is_given_up_does_no_harm(journal: Journal) -> None:
    graphs = graphs_of(journal)
    append(journal, "".join(power(i, BEGIN + i, 1, i) for i in range(9000)))

    def stop() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        graphs.query(POWER, [ALL], "http://base/", stop)
    assert 0 < graphs.size < 27_000
    check_same_as_log(graphs, journal)


def test_pushes_retention_and_questions_at_the_same_time(journal: Journal) -> None:
    graphs = graphs_of(journal)
    journal.streams.create(POWER, Retention(count=60))
    ended = threading.Event()
    faults: list[object] = []

    def ask() -> None:
        try:
            while not ended.is_set():
                found = Counter(e for e, *_ in rows(graphs, ALL))
                offsets = sorted(int(e.rpartition(":")[2][:-1]) for e in found)
                if offsets and (offsets != list(range(offsets[0], offsets[-1] + 1)) or set(found.values()) != {1}):
                    faults.append(offsets)
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(120):
        append(journal, "".join(power(i, BEGIN + i, 1, i) for i in range(number % 9 + 1)))
        if number % 5 == 0:
            journal.retain()
    ended.set()
    for thread in threads:
        thread.join()
    assert faults == []
    check_same_as_log(graphs, journal)
