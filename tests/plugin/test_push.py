"""What can be pushed, with which times, and that nothing is pushed when something is wrong."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pyoxigraph as ox
import pytest
import rdflib
from live_queries import E, S, paid, query

import oxiseq
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.terms.dictionary import TermDictionary

WHO, PAID = ox.NamedNode(E + "ann"), ox.NamedNode(E + "paid")
FIVE = ox.Literal("5", datatype=ox.NamedNode("http://www.w3.org/2001/XMLSchema#integer"))


def live(text: str = "") -> tuple[oxiseq.Store, oxiseq.ContinuousQuery[oxiseq.Match], oxiseq.Stream]:
    store = oxiseq.Store()
    return store, store.register(text or query("SELECT *", "A")), store.stream(S)


def rdflib_graph() -> rdflib.Graph:
    graph = rdflib.Graph()
    graph.add((rdflib.URIRef(E + "ann"), rdflib.URIRef(E + "paid"), rdflib.Literal(5)))
    return graph


GRAPHS: dict[str, Any] = {
    "N-Triples": f'<{E}ann> <{E}paid> "5"^^<http://www.w3.org/2001/XMLSchema#integer> .\n',
    "Turtle": f"@prefix : <{E}> . :ann :paid 5 .",
    "bytes": f"@prefix : <{E}> . :ann :paid 05 .".encode(),
    "triples": [ox.Triple(WHO, PAID, FIVE)],
    "generator": (ox.Triple(WHO, PAID, FIVE) for _ in range(1)),
    "quads": [ox.Quad(WHO, PAID, FIVE, ox.NamedNode(E + "g"))],
    "rdflib": rdflib_graph(),
}


@pytest.mark.parametrize("form", GRAPHS)
def test_forms_of_a_graph(form: str) -> None:
    _, found, stream = live()
    stream.push(GRAPHS[form], 1)
    (match,) = found.poll("0s")
    assert (match["who"], match["first"]) == (WHO, FIVE)


NEW_YEAR = datetime(2024, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        (1_704_067_200_000_000, NEW_YEAR),
        (-1, datetime(1970, 1, 1, tzinfo=UTC) - timedelta(microseconds=1)),
        (NEW_YEAR, NEW_YEAR),
        (datetime(2024, 1, 1), NEW_YEAR),  # without a zone: UTC
        (datetime(2024, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), NEW_YEAR),
    ],
)
def test_times(time: int | datetime, expected: datetime) -> None:
    _, found, stream = live()
    stream.push(paid(5), time)
    (match,) = found.poll("0s")
    assert match.at == expected
    assert match.events == {"A": ((S, match.at_us),)}


WRONG: dict[str, tuple[Any, Any, type[Exception]]] = {
    "malformed text": ("<a> nonsense", 2, oxiseq.EventError),
    "half a triple": (f"<{E}ann> <{E}paid>", 2, oxiseq.EventError),
    "not a graph": (5, 2, TypeError),
    "not triples": (["x"], 2, TypeError),
    "one triple": (ox.Triple(WHO, PAID, FIVE), 2, TypeError),
    "float time": (paid(1), 2.5, TypeError),
    "boolean time": (paid(1), True, TypeError),
    "no time": (paid(1), "noon", oxiseq.EventError),
    "no day": (paid(1), "2024-02-30", oxiseq.EventError),
    "too far": (paid(1), 1 << 70, oxiseq.EventError),
}


@pytest.mark.parametrize("fault", WRONG)
def test_nothing_is_pushed_when_something_is_wrong(fault: str) -> None:
    graph, time, error = WRONG[fault]
    _, found, stream = live()
    with pytest.raises(error):
        stream.push(graph, time)
    with pytest.raises(error):
        stream.extend([(1, paid(1)), (time, graph), (3, paid(3))])
    assert (stream.events, found.events) == (0, 0)
    assert list(found.poll("0s")) == []


@pytest.mark.parametrize("time", [2, "1970-01-01T00:00:00.000002Z", datetime(1970, 1, 1, 0, 0, 0, 2), ox.Literal(2)])
@pytest.mark.parametrize("graph", [paid(3), "# nothing\n", "", b"", [], rdflib.Graph()])
def test_a_graph_and_its_time_come_in_either_order(time: Any, graph: Any) -> None:
    terms = TermDictionary()
    batches = [encode_events([pair], terms) for pair in ((graph, time), (time, graph), [graph, time])]
    assert {batch.time.item() for batch in batches} == {2}
    assert {len(batch.subject) for batch in batches} == {1 if graph == paid(3) else 0}


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ((paid(3), paid(3)), "not a valid time"),
        (("2026-01-01T00:00:00Z", 5), "not an RDF text"),
        ((1, 2), "not an RDF text"),
        ((paid(3), None), "not a time: NoneType"),
        ((paid(3), 1.5), "not a time: float"),
        ((None, paid(3)), "not a time: NoneType"),
        ((True, paid(3)), "not a time: a boolean"),
        ((paid(3), "2026"), "not a valid time"),
        ((paid(3), 1, 2), r"an event is \(graph, time\)"),
    ],
)
def test_what_is_no_graph_with_a_time(pair: Any, message: str) -> None:
    with pytest.raises(oxiseq.OxiseqError, match=message):
        oxiseq.open().stream("urn:s").extend([pair])


def test_the_line_of_malformed_text_is_told() -> None:
    _, _, stream = live()
    with pytest.raises(oxiseq.EventError) as error:
        stream.push(f"{paid(1)}\n<a> nonsense", 2)
    assert error.value.line == 2
    assert str(error.value).startswith("line 2: ")


def test_an_empty_graph_is_an_event() -> None:
    """It stands between, for `,`."""
    _, found, stream = live(query("SELECT *", "A, B"))
    stream.extend([(1, paid(1)), (2, ""), (3, paid(2)), (4, paid(3))])
    assert [m.at_us for m in found.poll("0s")] == [4]
    assert (stream.events, found.events) == (4, 4)


def test_pushing_nothing() -> None:
    _, found, stream = live()
    stream.extend([])
    assert list(found.poll("0s")) == []
    assert stream.events == 0


def test_blank_nodes_of_two_events_are_two() -> None:
    _, found, stream = live(query("SELECT *", "A; B"))
    for time in (1, 2):
        stream.push(f"_:same <{E}paid> {time} .", time)
    assert list(found.poll("0s")) == []


def test_graphs_of_one_time_are_one_event() -> None:
    _, found, stream = live(query("SELECT ?who", "A", a="; :to ?whom"))
    stream.push(paid(1), 1)
    stream.push(f"<{E}ann> <{E}to> <{E}bob> .", 1)
    assert [m["who"] for m in found.poll("0s")] == [WHO]


def test_repr() -> None:
    _, found, stream = live()
    stream.push(paid(1), 1)
    assert repr(stream) == f"<Stream {S}>"
    assert repr(found) == "<ContinuousQuery q1: who, first>"


def test_times_are_texts_too() -> None:
    _, found, stream = live()
    stream.push(paid(1), "1970-01-01")
    stream.extend([("1970-01-01T00:00:01Z", paid(10)), ("1970-01-01T01:00:02+01:00", paid(100))])
    stream.advance("1970-01-02")
    assert [match.at_us for match in found.poll("0s")] == [0, 1_000_000, 2_000_000]
