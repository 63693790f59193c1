"""Jelly files: faults, other physical types, and life without pyjelly. Round trips: test_files_round_trip.py."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest
from event_contents import batch_contents
from pyoxigraph import NamedNode

from oxiseq.engine.errors import EventError
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.events.open import event_format, open_events, write_events
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.normal import XSD


def test_the_format_is_told_by_the_name() -> None:
    assert event_format("a.jelly") == event_format("b.JELLY.gz") == "jelly"


def test_without_pyjelly_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "oxiseq.engine.events.jelly", raising=False)
    monkeypatch.setitem(sys.modules, "pyjelly", None)
    path = tmp_path / "e.jelly"
    path.write_bytes(b"x")
    with pytest.raises(EventError, match=r"oxiseq\[jelly\]"):
        open_events(path, TermDictionary())
    with pytest.raises(EventError, match=r"oxiseq\[jelly\]"):
        write_events([], TermDictionary(), path)


def test_a_cut_file_costs_its_end_only(tmp_path: Path) -> None:
    pytest.importorskip("pyjelly")
    terms, path = TermDictionary(), tmp_path / "e.jelly"
    write_events([encode_events([(n, f"<urn:s> <urn:p> {n} .") for n in range(2000)], terms)], terms, path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(EventError, match="Jelly"):
        list(open_events(path, terms))
    reader = open_events(path, terms, on_error="skip")
    assert 1000 < sum(map(len, reader)) < 2000
    assert reader.report.skipped > 0


@pytest.mark.parametrize("data", [b"<urn:a> <urn:p> 1 .", b"\n\n\n", b"\x00", bytes(100), b"\x05\x0a\x03abc"])
def test_files_that_are_no_jelly(tmp_path: Path, data: bytes) -> None:
    pytest.importorskip("pyjelly")
    path = tmp_path / "e.jelly"
    path.write_bytes(data)
    with pytest.raises(EventError, match="Jelly"):
        list(open_events(path, TermDictionary()))


def write_stream(path: Path, quads: list[tuple[str, str, str, str]], logical: str, *, triples: bool = False) -> None:
    """A file by pyjelly itself."""
    sink = import_module("pyjelly.integrations.generic.generic_sink")
    serialize = import_module("pyjelly.integrations.generic.serialize")
    streams = import_module("pyjelly.serialize.streams")
    jelly = import_module("pyjelly.jelly")
    options = streams.SerializerOptions(logical_type=getattr(jelly, logical))
    kind = streams.TripleStream if triples else streams.GraphStream
    stream = kind(encoder=serialize.GenericSinkTermEncoder(lookup_preset=options.lookup_preset), options=options)
    data = sink.GenericStatementSink()
    for s, p, o, g in quads:
        literal = sink.Literal(o, datatype=XSD + "integer") if o.isdigit() else sink.IRI(o)
        graph = sink.IRI(g) if g else sink.DefaultGraph
        terms = (sink.IRI(s), sink.IRI(p), literal)
        data.add(sink.Triple(*terms) if triples else sink.Quad(*terms, graph))
    with path.open("wb") as file:
        for frame in serialize.stream_frames(stream, data):
            import_module("pyjelly.serialize.ioutils").write_delimited(frame, file)


QUADS = [
    ("urn:e", GENERATED_AT.value, "1", ""),
    ("urn:s", "urn:p", "02", "urn:e"),
    ("urn:s", "urn:p", "urn:o", "urn:e"),
]


def test_a_stream_of_graphs_is_read(tmp_path: Path) -> None:
    pytest.importorskip("pyjelly")
    path, terms = tmp_path / "e.jelly", TermDictionary()
    write_stream(path, QUADS, "LOGICAL_STREAM_TYPE_DATASETS")
    [(time, triples)] = batch_contents(open_events(path, terms), terms)
    assert time == 1
    assert triples == [("<urn:s>", "<urn:p>", f'"2"^^<{XSD}integer>'), ("<urn:s>", "<urn:p>", "<urn:o>")]


def test_a_stream_of_triples_has_no_events(tmp_path: Path) -> None:
    pytest.importorskip("pyjelly")
    path = tmp_path / "e.jelly"
    write_stream(path, QUADS, "LOGICAL_STREAM_TYPE_FLAT_TRIPLES", triples=True)
    with pytest.raises(EventError, match="no named graphs"):
        list(open_events(path, TermDictionary()))


def test_terms_that_are_none_are_faults(tmp_path: Path) -> None:
    pytest.importorskip("pyjelly")
    path = tmp_path / "e.jelly"
    write_stream(path, [*QUADS, ("urn:s", "not an IRI", "1", "urn:e")], "LOGICAL_STREAM_TYPE_DATASETS")
    with pytest.raises(EventError, match="Jelly"):
        list(open_events(path, TermDictionary(), NamedNode(GENERATED_AT.value)))
