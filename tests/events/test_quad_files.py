"""N-Quads and TriG: what makes an event, and what is left out."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from event_contents import Content, Contents
from pyoxigraph import NamedNode

from oxiseq.engine.errors import EventError
from oxiseq.engine.events import assembler, quads
from oxiseq.engine.events.open import open_events
from oxiseq.engine.events.report import OnError, ReadReport
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.normal import XSD

AT = "<http://www.w3.org/ns/prov#generatedAtTime>"
Read = Callable[..., tuple[Content, ReadReport]]


def stamp(name: str, second: int, graph: str = "") -> str:
    return f'<urn:{name}> {AT} "1970-01-01T00:00:{second:02}Z"^^<{XSD}dateTime> {graph} .\n'


def quad(value: str, name: str) -> str:
    return f'<urn:s> <urn:p> "{value}" <urn:{name}> .\n'


def event(second: int, *values: str) -> tuple[int, list[tuple[str, str, str]]]:
    return second * 1_000_000, [("<urn:s>", "<urn:p>", f'"{value}"') for value in values]


@pytest.fixture
def read(tmp_path: Path, contents: Contents) -> Read:
    def read(
        text: str | bytes, on_error: OnError = "stop", name: str = "events.nq", **options: NamedNode
    ) -> tuple[Content, ReadReport]:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        terms = TermDictionary()
        reader = open_events(path, terms, on_error=on_error, **options)
        events = contents(reader, terms)
        assert reader.report.events == len(events)
        assert not any("urn:a" in terms.text(term) for term in range(1, len(terms))), "an event name was interned"
        return events, reader.report

    return read


# --- where the time may stand ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        stamp("a", 1) + quad("1", "a") + quad("2", "a") + stamp("b", 2) + quad("3", "b"),
        quad("1", "a") + quad("2", "a") + stamp("a", 1) + quad("3", "b") + stamp("b", 2),
        quad("1", "a") + stamp("a", 1) + quad("2", "a") + quad("3", "b") + stamp("b", 2),
        stamp("b", 2) + stamp("a", 1) + quad("1", "a") + quad("2", "a") + quad("3", "b"),
        stamp("a", 1, "<urn:a>") + quad("1", "a") + quad("2", "a") + quad("3", "b") + stamp("b", 2, "<urn:b>"),
        quad("1", "a") + quad("2", "a") + quad("3", "b") + stamp("a", 1) + stamp("b", 2),
        quad("1", "a") + quad("3", "b") + quad("2", "a") + stamp("a", 1) + stamp("b", 2),
        stamp("a", 1)
        + stamp("a", 1)
        + quad("1", "a")
        + stamp("a", 1)
        + quad("2", "a")
        + quad("3", "b")
        + stamp("b", 2)
        + stamp("a", 1),
    ],
    ids=["before", "after", "among", "all-first", "own-graph", "all-last", "interleaved-untimed", "repeated"],
)
def test_the_time_may_stand_before_among_or_after_the_quads(read: Read, text: str) -> None:
    events, report = read(text)
    assert sorted(events) == [event(1, "1", "2"), event(2, "3")]
    assert (report.skipped, report.quads) == (0, text.count("\n"))


def test_an_event_that_waits_for_its_time_comes_when_it_is_told(read: Read) -> None:
    events, _ = read(quad("1", "a") + stamp("b", 2) + quad("2", "b") + quad("3", "c") + stamp("a", 1) + stamp("c", 3))
    assert events == [event(2, "2"), event(1, "1"), event(3, "3")]


def test_an_event_with_an_empty_graph_has_its_time_inside(read: Read) -> None:
    assert read(stamp("a", 1, "<urn:a>") + stamp("b", 2, "<urn:b>"))[0] == [event(1), event(2)]


def test_times_as_integers_and_without_zone(read: Read) -> None:
    text = f'<urn:a> {AT} "1000000"^^<{XSD}long> .\n' + quad("1", "a")
    text += f'<urn:b> {AT} "1970-01-01T00:00:02"^^<{XSD}dateTime> .\n' + quad("2", "b")
    assert read(text)[0] == [event(1, "1"), event(2, "2")]


def test_another_time_predicate(read: Read) -> None:
    text = stamp("b", 1).replace(AT, "<urn:when>") + quad("1", "b") + f'<urn:b> {AT} "x" <urn:b> .\n'
    [(time, triples)], _ = read(text, time_predicate=NamedNode("urn:when"))
    assert time == 1_000_000
    assert triples[1] == ("<urn:b>", AT, '"x"')


def test_graphs_named_by_blank_nodes(read: Read) -> None:
    text = stamp("a", 1).replace("<urn:a>", "_:g") + '<urn:s> <urn:p> "1" _:g .\n'
    assert read(text)[0] == [event(1, "1")]


def test_blank_nodes_are_scoped_to_their_event(tmp_path: Path) -> None:
    text = "".join(stamp(n, 1) + f"_:x <urn:p> _:y <urn:{n}> .\n_:y <urn:p> _:x <urn:{n}> .\n" for n in "ab")
    path = tmp_path / "events.nq"
    path.write_text(text)
    [batch] = open_events(path, TermDictionary())
    x1, y1, x2, y2 = batch.subject.tolist()
    assert batch.object.tolist() == [y1, x1, y2, x2]
    assert len({x1, y1, x2, y2}) == 4


# --- faults ---------------------------------------------------------------------------------------

GOOD = stamp("a", 1) + quad("1", "a")
FAULTS = {
    "no time": (GOOD + quad("2", "b"), None, "its time is not known"),
    "no graph": (GOOD + stamp("b", 2), None, "no graph of this name"),
    "comes again": (GOOD + stamp("b", 2) + quad("2", "b") + quad("3", "a") + quad("4", "a"), 5, "comes again"),
    "two times": (GOOD + stamp("a", 2), 3, "a second time"),
    "two times, late": (GOOD + stamp("b", 2) + quad("2", "b") + stamp("a", 2), 5, "a second time"),
    "no such time": (GOOD + f'<urn:a> {AT} "soon" .\n', 3, "is not an xsd:dateTime"),
    "time is an IRI": (GOOD + f"<urn:a> {AT} <urn:soon> .\n", 3, "is not an xsd:dateTime"),
    "default graph": (GOOD + '<urn:a> <urn:p> "x" .\n', 3, "default graph"),
    "malformed": (GOOD + "\n# a comment\n<urn:s> <urn:p> oops <urn:a> .\n" + quad("5", "a"), 5, "object"),
    "no dot": (GOOD + '<urn:s> <urn:p> "x" <urn:a>\n', 3, "dot"),
    "cut line": (GOOD + '<urn:s> <urn:p> "x\ny" <urn:a> .\n', 3, "end of line"),
    "bad IRI": (GOOD + "<urn:s> <urn: p> <urn:o> <urn:a> .\n", 3, "IRI"),
}


@pytest.mark.parametrize(("text", "line", "reason"), FAULTS.values(), ids=FAULTS)
def test_stop_tells_file_line_and_reason(read: Read, text: str, line: int | None, reason: str) -> None:
    with pytest.raises(EventError) as caught:
        read(text)
    assert caught.value.line == line
    assert reason in caught.value.reason
    assert str(caught.value.file).endswith("events.nq")


@pytest.mark.parametrize(("text", "line", "reason"), FAULTS.values(), ids=FAULTS)
def test_skip_counts_and_goes_on(read: Read, text: str, line: int | None, reason: str) -> None:
    events, report = read(text + stamp("z", 9) + quad("9", "z"), "skip")
    assert events[0][1][0] == event(1, "1")[1][0]
    assert events[-1] == event(9, "9")
    assert report.skipped == (2 if reason == "end of line" else 1)
    assert report.errors[0].line == line
    assert reason in report.errors[0].reason


def test_a_malformed_line_costs_that_line_only(read: Read) -> None:
    text = stamp("a", 1) + "".join(quad(str(n), "a") if n % 7 else "junk\n" for n in range(100))
    events, report = read(text, "skip")
    assert events == [event(1, *(str(n) for n in range(100) if n % 7))]
    assert report.skipped == 15
    assert [error.line for error in report.errors] == [2 + 7 * n for n in range(10)]


def test_bytes_that_are_not_utf8(read: Read) -> None:
    text = (stamp("a", 1) + quad("1", "a")).encode() + b'<urn:s> <urn:p> "\xff" <urn:a> .\n' + quad("2", "a").encode()
    events, report = read(text, "skip")
    assert events == [event(1, "1", "2")]
    assert [error.line for error in report.errors] == [3]


def test_names_are_remembered_for_a_while_only(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembler, "REMEMBERED", 2)
    text = "".join(stamp(n, 1) + quad("1", n) for n in "bcdef") + stamp("b", 2) + quad("2", "b")
    assert read(text)[0][-1] == event(2, "2")


# --- the file -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 18])
def test_blocks_of_any_size_give_the_same(read: Read, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(quads, "BLOCK_BYTES", size)
    text = "".join(stamp(f"b{n}", n) + quad(str(n), f"b{n}") + "# é\n\n" for n in range(20))
    text += "oops\n" + quad("x", "b19")
    events, report = read(text.removesuffix("\n"), "skip")
    assert events == [event(n, str(n)) for n in range(19)] + [event(19, "19", "x")]
    assert [error.line for error in report.errors] == [81]


def test_batches_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "events.nq"
    path.write_text("".join(stamp(f"b{n}", 1) + quad("1", f"b{n}") for n in range(25)))
    batches = list(quads.read_quads(path, TermDictionary(), ReadReport("x"), batch_events=10))
    assert [len(batch) for batch in batches] == [10, 10, 5]


@pytest.mark.parametrize("name", ["events.nq.gz", "events.nq"])
def test_gzip_is_seen_by_its_bytes(read: Read, name: str) -> None:
    data = gzip.compress(GOOD.encode())
    events, report = read(data, name=name)
    assert events == [event(1, "1")]
    assert report.bytes_read == report.bytes_total == len(data)


def test_a_plain_file_named_gz_is_read(read: Read) -> None:
    assert read(GOOD, name="events.nq.gz")[0] == [event(1, "1")]


NQUADS = "".join(stamp(f"b{n}", 1) + quad(str(n * n), f"b{n}") for n in range(20_000))
TRIG_TEXT = "".join(f'<urn:b{n}> {{ <urn:b{n}> {AT} {n} . <urn:s> <urn:p> "{n * n}" }}\n' for n in range(20_000))


@pytest.mark.parametrize(("name", "text"), [("events.nq.gz", NQUADS), ("events.trig.gz", TRIG_TEXT)])
def test_damaged_gzip(read: Read, name: str, text: str) -> None:
    data = gzip.compress(text.encode())[:-2000]
    with pytest.raises(EventError, match="damaged gzip"):
        read(data, name=name)
    events, report = read(data, "skip", name=name)
    assert 10_000 < len(events) < 20_000
    assert report.errors[0].reason.startswith("damaged gzip")


def test_a_byte_order_mark_and_windows_line_ends(read: Read) -> None:
    assert read(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())[0] == [event(1, "1")]


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n"])
@pytest.mark.parametrize("name", ["e.nq", "e.trig", "e.nq.gz"])
def test_a_file_without_events(read: Read, text: str, name: str) -> None:
    assert read(text, name=name)[0] == []


# --- TriG -----------------------------------------------------------------------------------------

TRIG = f"""@prefix : <urn:> . @prefix xsd: <{XSD}> . @prefix prov: <http://www.w3.org/ns/prov#> .
:a prov:generatedAtTime "1970-01-01T00:00:01Z"^^xsd:dateTime .
:a {{ :s :p "1" , "2" }}
GRAPH :b {{ :b prov:generatedAtTime 2000000 . :s :p "3" }}
"""


def test_trig(read: Read) -> None:
    events, report = read(TRIG, name="events.trig")
    assert events == [event(1, "1", "2"), event(2, "3")]
    assert report.bytes_read == report.bytes_total > 0


def test_a_bad_statement_of_trig_costs_that_statement_only(read: Read) -> None:
    text = TRIG + ":c { :s :p oops }\n" + ":d { :d prov:generatedAtTime 3 }"
    with pytest.raises(EventError, match="oops") as caught:
        read(text, name="events.trig")
    assert caught.value.line == 5
    events, report = read(text, "skip", name="events.trig")
    assert events == [event(1, "1", "2"), event(2, "3"), (3, [])]
    assert (report.skipped, report.errors[0].line) == (1, 5)


def test_trig_faults_of_events_have_no_line(read: Read) -> None:
    events, report = read(TRIG + ':a { :s :p "9" }', "skip", name="events.trig")
    assert len(events) == 2
    assert [error.line for error in report.errors] == [None]
    assert "comes again" in report.errors[0].reason
