"""Logs of RDF messages as events: times, faults that cost their message alone, all formats alike."""

from __future__ import annotations

import gzip
import time
from io import BytesIO
from pathlib import Path
from typing import Any, Final
from unittest.mock import Mock, patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import CanonicalizationAlgorithm, Dataset, NamedNode, Quad, RdfFormat, parse

from oxiseq.engine.errors import EventError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import decode_events
from oxiseq.engine.events.messages import turtle
from oxiseq.engine.events.messages.announced import RDF_FORMATS, MessageFormat
from oxiseq.engine.events.messages.reading import read_messages
from oxiseq.engine.events.messages.turtle import turtle_messages
from oxiseq.engine.events.messages.writing import head, message_text
from oxiseq.engine.events.open import open_events, write_events
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.report import OnError, ReadReport
from oxiseq.engine.terms.dictionary import TermDictionary

V: Final = 'VERSION "1.2-messages"\n'
AT: Final = str(GENERATED_AT)
XSD: Final = "http://www.w3.org/2001/XMLSchema#"
ENDINGS: Final[dict[str, MessageFormat]] = {
    ".nt": "messages-ntriples",
    ".nq": "messages-nquads",
    ".ttl": "messages-turtle",
    ".trig": "messages-trig",
    ".ndjsonld": "messages-ndjsonld",
}


def stamp(number: int, subject: str = "_:t") -> str:
    """A triple that says when."""
    return f'{subject} {AT} "{number}"^^<{XSD}integer> .\n'


def events(
    text: str, format: MessageFormat = "messages-turtle", on_error: OnError = "stop", **more: Any
) -> tuple[list[tuple[int, int]], list[str]]:
    """(time, number of triples) of each event, and the faults."""
    batch, _, report = read(text, format, on_error, **more)
    return list(zip(batch.time.tolist(), (batch.offset[1:] - batch.offset[:-1]).tolist(), strict=True)), [
        f"{error.line}: {error.reason}" for error in report.errors
    ]


def read(
    text: str, format: MessageFormat, on_error: OnError = "stop", time_predicate: NamedNode = GENERATED_AT, **more: Any
) -> tuple[EventBatch, TermDictionary, ReadReport]:
    """All events of a text."""
    terms, report = TermDictionary(), ReadReport("")
    batches = read_messages(BytesIO(text.encode()), terms, report, on_error, format, time_predicate, **more)
    return EventBatch.concat(list(batches)), terms, report


# --- times ------------------------------------------------------------------------------------------


def test_the_time_of_the_graph_counts_before_others() -> None:
    inside = f"<urn:g> {{ <urn:o> <urn:p> 1 . <urn:o> {AT} 7 }}\n"
    assert events(V + stamp(5, "<urn:g>") + stamp(6, "<urn:o>") + inside, "messages-trig") == ([(5, 3)], [])
    assert events(V + f"<urn:g> {{ <urn:g> {AT} 5 . <urn:o> <urn:p> 1 }}", "messages-trig") == ([(5, 1)], [])


def test_a_node_of_which_nothing_else_is_said_only_tells_the_time() -> None:
    assert events(V + stamp(5) + "<urn:a> <urn:p> 1 .") == ([(5, 1)], [])
    assert events(V + stamp(5)) == ([(5, 0)], [])
    assert events(V + stamp(5) + "<urn:a> <urn:p> _:t .") == ([(5, 2)], [])  # it is an object, too


def test_the_time_of_an_observation_is_part_of_its_event() -> None:
    text = V + '<urn:o> <urn:at> "1970-01-01T00:00:01Z"^^<' + XSD + "dateTime> ; <urn:value> 3 ."
    assert events(text, time_predicate=NamedNode("urn:at")) == ([(1_000_000, 2)], [])


def test_times_have_to_agree() -> None:
    agreeing = "<urn:a> <urn:p> 1 . <urn:b> <urn:p> 1 .\n" + stamp(5, "<urn:a>")
    assert events(V + agreeing + stamp(5, "<urn:b>")) == ([(5, 4)], [])
    with pytest.raises(EventError, match="a message with two times"):
        events(V + agreeing + stamp(6, "<urn:b>"))


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        ('"1970-01-01T00:00:01"^^<' + XSD + "dateTime>", 1_000_000),
        ('"1970-01-01T01:00:01+01:00"^^<' + XSD + "dateTime>", 1_000_000),
        ('"0010"^^<' + XSD + "int>", 10),
        ('"2024-01-01"^^<' + XSD + "date>", "not a time"),
        ('"1970-01-01T00:00:00.0000019Z"^^<' + XSD + "dateTime>", 1),
        ('"x"^^<' + XSD + "dateTime>", "not a valid time"),
        ('"99999999999999999999"^^<' + XSD + "integer>", "outside of the years"),
        ('"253402300800000000"^^<' + XSD + "integer>", "outside of the years"),
        ('"1.0"^^<' + XSD + "decimal>", "not a time"),
        ("<urn:when>", "not a time"),
    ],
)
def test_what_is_a_time(literal: str, expected: int | str) -> None:
    text = V + f"_:t {AT} {literal} .\nMESSAGE\n" + stamp(3)
    if isinstance(expected, int):
        assert events(text, "messages-nquads") == ([(expected, 0), (3, 0)], [])
        return
    found, faults = events(text, "messages-nquads", "skip")
    assert found == [(3, 0)]
    assert len(faults) == 1
    assert expected in faults[0]


def test_a_message_without_a_time_is_left_out_or_has_the_one_given() -> None:
    text = V + "<urn:a> <urn:p> 1 .\nMESSAGE\n" + stamp(5) + "MESSAGE\nMESSAGE\n"
    for format in ("messages-turtle", "messages-trig"):
        found, faults = events(text, format, "skip")  # type: ignore[arg-type]
        assert found == [(5, 0)]
        assert [fault.partition(";")[0] for fault in faults] == [f"{line}: a message without a time" for line in (1, 5)]
    assert events(text, time=9) == ([(9, 1), (5, 0), (9, 0)], [])


# --- faults -----------------------------------------------------------------------------------------

BROKEN: Final = {
    "a word": "<urn:a> <urn:b> c .",
    "MESSAGE in a statement": "<urn:a> <urn:b>\nMESSAGE\n<urn:c> .",
    "no dot": "<urn:a> <urn:b> <urn:c>",
    "an open string": '<urn:a> <urn:b> "c .',
    "an open long string": '<urn:a> <urn:b> """c .',
    "an open IRI": "<urn:a> <urn:b> <urn:c .",
    "a directive without end": "@prefix x: <urn:x",
    "a prefix that is not declared": "x:a x:b x:c .",
    "@message without its dot": "<urn:a> <urn:b> <urn:c> .\n@message <urn:a>",
    "a word like the delimiter": "MESSAGES",
    "an open bracket": "<urn:a> <urn:b> [ <urn:c> <urn:d> .",
    "an open list": "<urn:a> <urn:b> ( 1 2 .",
    "an IRI that is none": "<urn:a> <urn:b> <c d> .",
    "a relative IRI": "<a> <b> <c> .",
    "NUL": "<urn:a> <urn:b> \0 .",
}


@pytest.mark.parametrize("format", ["messages-turtle", "messages-trig", "messages-nquads", "messages-ntriples"])
@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_one_broken_message_costs_itself_alone(format: MessageFormat, broken: str) -> None:
    """And what it was cut into."""
    good = [stamp(n) + f"<urn:s> <urn:p> <urn:o{n}> .\n" for n in range(4)]
    text = V + "MESSAGE\n".join([good[0], good[1], f"{stamp(9)}{broken}\n", good[2], good[3]])
    found, faults = events(text, format, "skip")
    assert found == [(n, 1) for n in range(4)]
    assert 1 <= len(faults) <= 2
    with pytest.raises(EventError):
        events(text, format)


@pytest.mark.parametrize("graph", ["<urn:g>", "GRAPH <urn:g>", "", "_:g"])
def test_a_delimiter_in_the_braces_of_a_graph(graph: str) -> None:
    text = V + f"{graph} {{\n <urn:a> <urn:b> <urn:c> .\nMESSAGE\n}}\nMESSAGE\n" + stamp(4)
    found, faults = events(text, "messages-trig", "skip")
    assert found == [(4, 0)]
    assert faults[0] == '4: a message ends within the braces of a graph: "}" expected before it'


def test_lines_of_faults() -> None:
    text = V + stamp(1) + "MESSAGE\n" + stamp(2) + "# here\n<urn:a> <urn:b> c .\nMESSAGE\n" + stamp(3)
    for format in ("messages-turtle", "messages-trig", "messages-nquads", "messages-ntriples"):
        found, faults = events(text, format, "skip")  # type: ignore[arg-type]
        assert found == [(1, 0), (3, 0)]
        assert faults[0].startswith("6: ")


def test_a_delimiter_in_a_string_is_none() -> None:
    text = V + stamp(1) + "<urn:a> <urn:b> \"\"\"x\nMESSAGE\n@message .\n\"\"\" , '''\nMESSAGE\n''' .\n" + stamp(1)
    assert events(text) == ([(1, 2)], [])


def test_a_graph_in_triples_is_a_fault() -> None:
    text = V + stamp(1) + "<urn:a> <urn:b> <urn:c> <urn:g> .\nMESSAGE\n" + stamp(2)
    assert events(text, "messages-ntriples", "skip")[0] == [(2, 0)]
    assert events(text, "messages-nquads", "skip")[0] == [(1, 1), (2, 0)]


def test_prefixes_of_a_broken_message_hold_behind_it() -> None:
    text = V + "PREFIX x: <urn:x:>\nx:a x:b c .\nMESSAGE\n" + stamp(2) + "x:a x:b x:c .\n"
    assert events(text, on_error="skip")[0] == [(2, 1)]


PIECES: Final = (
    stamp(1),
    stamp(2, "<urn:a>"),
    "<urn:a> <urn:b> _:b , [ <urn:c> 'x' ] .\n",
    "x:a x:b ( 1 2 ) .\n",
    "PREFIX x: <urn:x:>\n",
    "@prefix x: <urn:y:> .\n",
    "BASE <http://example.org/>\n",
    "<r> <s> <t> . # MESSAGE\n",
    '<urn:a> <urn:b> """one\nMESSAGE\ntwo""" .\n',
    "<urn:g> { <urn:a> <urn:b> _:b }\n",
    "<urn:g> {\n",
    "{\n",
    "GRAPH\n",
    "}\n",
    "<urn:a> <urn:b> c .\n",
    "<urn:a> <urn:b>\n",
    "<urn:c> .\n",
    "<urn:a> <urn:b> 'open\n",
    "# nothing\r\n",
    *("MESSAGE\n", "MESSAGE\n", "  message # here\r\n", "@message .\n", "MESSAGE <urn:a> <urn:b> 1 .\n"),
)


@given(st.lists(st.sampled_from(PIECES), max_size=24), st.sampled_from(["messages-turtle", "messages-trig"]))
@settings(deadline=None)
def test_messages_are_the_same_together_and_one_by_one(pieces: list[str], format: MessageFormat) -> None:
    """Whatever is wrong with some of them."""

    def found() -> tuple[Any, ...]:
        log = turtle_messages(BytesIO((V + "".join(pieces)).encode()), RDF_FORMATS[format])
        one_by_one = [
            (line, each.fault, quads)
            for each in log
            for line, quads in zip(each.lines, each.text.split(b"MESSAGE\n"), strict=False)
        ]
        told = [(line, fault) for line, fault, _ in one_by_one]
        quads = [Dataset(parse(text, RdfFormat.N_QUADS)) for _, _, text in one_by_one]
        for each in quads:
            each.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
        return told, quads

    together = found()
    with patch.object(turtle._Log, "_several", return_value=None):
        assert found() == together


def test_text_that_is_all_faults_takes_time_by_its_length() -> None:
    """Each message seems to go on to the end of the text."""
    took = []
    for count in (2_500, 20_000):
        begun = time.process_time()
        found, _ = events(V + "x\nMESSAGE\n" * count + "x\n", "messages-turtle", "skip")
        took.append(time.process_time() - begun)
        assert not found
    assert took[1] < 30 * took[0] + 1


def test_where_no_delimiter_has_a_line_of_its_own_few_searches_look_for_one() -> None:
    """Each search reads the rest of a block."""
    searches = Mock(wraps=turtle._ENDS)
    with patch.object(turtle, "_ENDS", searches):
        found, _ = events(V + (stamp(1).strip() + " MESSAGE\n") * 3_000)
    assert len(found) == 3_000
    assert 1 <= searches.finditer.call_count <= 20


@pytest.mark.parametrize("text", ["", "\n", V, V + "# nothing\n", "\ufeff" + V, V + "\n\n"])
def test_nothing(text: str) -> None:
    for format in ("messages-turtle", "messages-trig", "messages-nquads", "messages-ntriples"):
        assert events(text, format) == ([], [])  # type: ignore[arg-type]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_ends_comments_and_case(end: str) -> None:
    text = V + stamp(1) + " MESSAGE  # a comment\n# MESSAGE\n" + stamp(2) + "\tMESSAGE\n" + stamp(3)
    text = text.replace("\n", end)
    for format in ("messages-turtle", "messages-trig", "messages-nquads", "messages-ntriples"):
        assert [at for at, _ in events(text, format)[0]] == [1, 2, 3]  # type: ignore[arg-type]


def test_ten_thousand_messages_in_one_line_and_one_of_ten_thousand_lines() -> None:
    assert len(events(V + f"_:t {AT} 1 . MESSAGE " * 10_000)[0]) == 10_000
    body = "".join(f"<urn:s> <urn:p> _:b{n} .\n" for n in range(10_000))
    for format in ("messages-turtle", "messages-nquads"):
        assert events(V + body + stamp(1) + "MESSAGE\n" + body + stamp(2), format)[0] == [  # type: ignore[arg-type]
            (1, 10_000),
            (2, 10_000),
        ]


def test_lines_of_json() -> None:
    at = GENERATED_AT.value
    good = f'{{"@id":"urn:a","{at}":3,"urn:p":1}}\n'
    bad = ['{"@id":\n', "[]\n", "1\n", '{"@context":"https://elsewhere.example/"}\n', '{"a":{"@type":7}}\n', "nul\n"]
    text = "".join(good + each for each in bad) + good
    found, faults = events(text, "messages-ndjsonld", "skip")
    assert found == [(3, 2)] * 7
    assert [int(fault.partition(":")[0]) for fault in faults] == [2, 4, 6, 8, 10, 12]
    assert "nothing is fetched" in faults[3]


# --- files ------------------------------------------------------------------------------------------


def test_files_announce_themselves(tmp_path: Path) -> None:
    text = V + stamp(1) + "MESSAGE\n" + stamp(2)
    for ending in (".nt", ".nq", ".ttl", ".trig", ".nt.gz", ".nq.gz", ".ttl.gz", ".trig.gz"):
        file = tmp_path / f"log{ending}"
        file.write_bytes(gzip.compress(text.encode()) if ending.endswith(".gz") else text.encode())
        reader = open_events(file, TermDictionary())
        assert sum(map(len, reader)) == 2
        assert reader.report.bytes_read == reader.report.bytes_total == file.stat().st_size


@pytest.mark.parametrize("text", ["<urn:a> <urn:b> <urn:c> .\n", 'VERSION "1.2"\n', "# VERSION\n", "MESSAGE\n"])
def test_a_file_of_triples_that_does_not_is_refused(tmp_path: Path, text: str) -> None:
    for ending in (".nt", ".ttl"):
        file = tmp_path / f"log{ending}"
        file.write_text(text)
        with pytest.raises(EventError, match="hence no events, unless they are RDF Messages"):
            open_events(file, TermDictionary())


def test_other_announcements(tmp_path: Path) -> None:
    for n, version in enumerate(["@version '1.1-messages' .", 'version "1.2-basic-messages"']):
        file = tmp_path / f"log{n}.ttl"
        file.write_text(f"# a log\n@prefix x: <urn:x:> .\nBASE <urn:b:>\n{version}\nx:a {AT} 1 . MESSAGE x:a {AT} 2 .")
        assert sum(map(len, open_events(file, TermDictionary()))) == 2


def test_a_gzip_file_that_is_cut_off_loses_the_message_that_is_cut(tmp_path: Path) -> None:
    for ending in (".nt.gz", ".ttl.gz"):
        file = tmp_path / f"log{ending}"
        log = V + "".join(f'{stamp(n)}<urn:s> <urn:p> "{n * n}" .\nMESSAGE\n' for n in range(9_999))
        whole = gzip.compress(log.encode())
        file.write_bytes(whole[: len(whole) // 2])
        reader = open_events(file, TermDictionary(), on_error="skip")
        batch = EventBatch.concat(list(reader))
        assert 1_000 < len(batch) < 9_000
        assert batch.time.tolist() == list(range(len(batch)))
        assert (batch.offset[1:] - batch.offset[:-1] == 1).all()
        assert [error.reason.partition(",")[0] for error in reader.report.errors] == ["damaged gzip data"]
        with pytest.raises(EventError, match="damaged gzip data"):
            list(open_events(file, TermDictionary()))


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_written_is_read_back(tmp_path: Path, ending: str) -> None:
    text = (
        f"<urn:e0> {AT} 5 . <urn:e0> {{ _:a <urn:p> _:b . _:b <urn:p> _:a . _:a <urn:q> 1.5 }}\n"
        f"<urn:e1> {{ <urn:e1> {AT} 7 }}\n<urn:e2> {AT} 6 . <urn:e2> {{ _:a <urn:p> 'MESSAGE\\nMESSAGE'@en }}\n"
    )
    (tmp_path / "events.trig").write_text(text)
    terms = TermDictionary()
    batches = list(open_events(tmp_path / "events.trig", terms))
    for zipped in ("", ".gz"):
        file = tmp_path / f"log{ending}{zipped}"
        assert write_events(batches, terms, file, format=ENDINGS[ending]) == 3
        again = TermDictionary()
        back = EventBatch.concat(list(open_events(file, again)))
        assert back.time.tolist() == [5, 7, 6]
        assert _graphs(back, again) == _graphs(EventBatch.concat(batches), terms)


def test_triple_terms(tmp_path: Path) -> None:
    """JSON-LD alone has none."""
    text = V + stamp(5) + "<urn:a> <urn:b> <<( <urn:a> <urn:b> <<( <urn:c> <urn:d> 1 )>> )>> ."
    batch, terms, _ = read(text, "messages-turtle")
    for ending, format in ENDINGS.items():
        file = tmp_path / f"log{ending}"
        if format == "messages-ndjsonld":
            with pytest.raises(EventError, match=r"JSON-LD does not support RDF 1\.2"):
                write_events([batch], terms, file)
            assert not file.exists()
            continue
        write_events([batch], terms, file, format=format)
        again = TermDictionary()
        (back,) = open_events(file, again)
        assert [*decode_events(back, again)] == [*decode_events(batch, terms)]


# --- all formats alike ------------------------------------------------------------------------------

_NODES = st.sampled_from(["<urn:a>", "<urn:b>", "_:a", "_:b", "<urn:g>"])
_OBJECTS = _NODES | st.sampled_from(['"x\\ny"@en', f'"7"^^<{XSD}integer>', '"MESSAGE"'])
_QUADS = st.builds(
    lambda s, p, o, g: f"{s} {p} {o} {g} .",
    _NODES,
    st.sampled_from(["<urn:p>", "<urn:q>"]),
    _OBJECTS,
    st.sampled_from(["", "<urn:g>", "_:a"]),
)
_STAMPS = st.builds(
    lambda s, o, g: f'{s} {AT} "{o}"^^<{XSD}integer> {g} .', _NODES, st.integers(0, 2), st.sampled_from(["", "<urn:g>"])
)
_MESSAGES = st.lists(st.lists(_QUADS | _STAMPS, max_size=5), max_size=4)


def _said(message: list[str]) -> tuple[int, Dataset] | None:
    """The event of a message by the text of times.py, in the plainest way; None: it is none."""
    quads = set(parse("\n".join(message), RdfFormat.N_QUADS))
    graphs = {q.graph_name for q in quads}
    dated = {
        q
        for q in quads
        if q.predicate == GENERATED_AT and (str(q.graph_name) == "DEFAULT" or q.graph_name == q.subject)
    }
    named = {q for q in dated if q.subject in graphs}
    alone = {q for q in dated if all(o in dated or q.subject != o.subject for o in quads)}
    alone = {q for q in alone if all(q.subject != o.object for o in quads)}
    telling = named or alone or dated
    times = {int(str(q.object.value)) for q in telling}  # type: ignore[union-attr]
    if len(times) != 1:
        return None
    kept = quads - telling if named or alone else quads
    return times.pop(), _canonical(Quad(q.subject, q.predicate, q.object) for q in kept)


def _canonical(quads: Any) -> Dataset:
    dataset = Dataset(quads)
    dataset.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    return dataset


def _graphs(batch: EventBatch, terms: TermDictionary) -> list[tuple[int, Dataset]]:
    return [
        (at, _canonical(Quad(t.subject, t.predicate, t.object) for t in graph))
        for at, graph in decode_events(batch, terms)
    ]


@settings(max_examples=60, deadline=None)
@given(_MESSAGES)
def test_formats_agree_with_the_plain_reading(messages: list[list[str]]) -> None:
    expected = [said for message in messages if (said := _said(message)) is not None]
    text = V + "".join("\n".join([*message, "MESSAGE\n"]) for message in messages)
    batch, terms, report = read(text, "messages-nquads", "skip")
    assert _graphs(batch, terms) == expected
    assert report.skipped == len(messages) - len(expected)
    for format in RDF_FORMATS:
        if format in ("messages-ntriples", "messages-turtle"):
            continue  # they have no graphs
        text = head(format) + "".join(
            message_text(set(parse("\n".join(message), RdfFormat.N_QUADS)), format) for message in messages
        )
        batch, terms, report = read(text, format, "skip")
        assert _graphs(batch, terms) == expected, format
        assert report.skipped == len(messages) - len(expected)
