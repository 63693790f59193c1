"""RDF that is nested deep, and JSON-LD whose contexts multiply, are refused by name at every door, before the work."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import RdfFormat, Store

from oxiseq.engine import jsonld
from oxiseq.engine.attended import AbandonedError, attended
from oxiseq.engine.events.contexts import Contexts
from oxiseq.engine.rdf import Guarded, load, parse, rewritten
from oxiseq.kb_loader.files import load_file
from oxiseq.live.intake import RejectedError, read_batch, read_graph, read_log

STAMP = (
    b'<http://e> <http://www.w3.org/ns/prov#generatedAtTime> "2024-05-01T10:00:00Z"'
    b"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n"
)


def triple_terms(depth: int, between: bytes = b" ") -> bytes:
    return (b"<<(" + between + b"<http://a>" + between + b"<http://b>" + between) * depth + b'"1"' + b" )>>" * depth


def elements(depth: int) -> bytes:
    head = b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
    return head + b"<e:T><e:p>" * depth + b"</e:p></e:T>" * depth + b"</rdf:RDF>"


def objects(depth: int) -> bytes:
    return b'{"http://e/p":' * depth + b"1" + b"}" * depth


def terms(count: int, name: str = "t") -> dict[str, Any]:
    return {f"{name}{i}": f"http://e/{name}{i}" for i in range(count)}


def nodes(count: int, **each: Any) -> list[dict[str, Any]]:
    return [{"@id": f"http://e/{i}", **each} for i in range(count)]


MULTIPLYING = {
    "embedded": {"@context": terms(2000), "@graph": nodes(1000, **{"@context": {"x": "http://x/"}})},
    "embedded, the large one behind": {"@graph": nodes(1000, **{"@context": {"x": "h:x"}}), "@context": terms(2000)},
    "nothing": {"@context": terms(2000), "@graph": nodes(1000, **{"@context": None})},
    "of a property": {
        "@context": {**terms(1000), "s": {"@id": "http://s", "@context": terms(1000, "u")}},
        "@graph": nodes(1000, s={"u1": 1}),
    },
    "of a type by an alias": {
        "@context": {**terms(1000), "kind": "@type", "S": {"@id": "http://s", "@context": terms(1000, "u")}},
        "@graph": nodes(1000, kind=["S"]),
    },
    "in lists": {"@context": [terms(1000), [terms(1000, "u")][0]], "@graph": nodes(1000, **{"@context": [{}, {}]})},
    "within one another": {
        "@context": {**terms(3000), **{f"s{i}": {"@id": "http://s", "@context": {}} for i in range(500)}},
    },
}  # fmt: skip


@pytest.mark.parametrize("name", MULTIPLYING)
def test_contexts_that_multiply_are_refused_before_they_are_applied(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oxiseq.engine.rdf.pyoxigraph.parse", lambda *given: pytest.fail("it is parsed"))
    text = json.dumps(MULTIPLYING[name]).encode()
    hidden = text.replace(b'"@context"', b'"\\u0040context"')
    for each in (text, hidden):
        with pytest.raises(SyntaxError, match="copies of their entries"):
            parse(each, RdfFormat.JSON_LD)


def test_usual_contexts_are_read() -> None:
    own = {**terms(40), "s": {"@id": "http://e/s", "@context": terms(20, "u")}}
    usual = [
        {"@context": terms(1500), "@graph": nodes(2000, t1=1, t2={"t3": 1})},
        nodes(2000, **{"@context": own, "s": {"u1": 1}}),
    ]
    for document in usual:
        assert sum(1 for _ in parse(json.dumps(document).encode(), RdfFormat.JSON_LD)) == 4000 + 2000 * (
            document is usual[0]
        )


def test_each_door_of_json_ld_has_the_bound(tmp_path: Path) -> None:
    document = MULTIPLYING["embedded"]
    text = json.dumps(document).encode()
    with pytest.raises(SyntaxError, match="copies"):
        rewritten(text, RdfFormat.JSON_LD, RdfFormat.N_QUADS)
    with pytest.raises(SyntaxError, match="copies"):
        parse(io.BytesIO(text), RdfFormat.JSON_LD)
    with pytest.raises(SyntaxError, match="copies"):
        load(Store().load, text, RdfFormat.JSON_LD)
    with pytest.raises(RejectedError, match="copies"):
        read_graph(text, RdfFormat.JSON_LD, 0)
    (tmp_path / "kb.jsonld").write_bytes(text)
    with pytest.raises(SyntaxError, match="copies"):
        load(Store().bulk_load, path=tmp_path / "kb.jsonld")
    with pytest.raises(Exception, match="copies"):
        load_file(Store(), tmp_path / "kb.jsonld")
    with pytest.raises(RejectedError) as told:
        read_log(json.dumps(document).encode() + b"\n", "messages-ndjsonld", 0)
    assert "copies" in str(told.value.reasons)
    contexts = Contexts({"http://c/": terms(2000)})
    imported = {"@context": {"@import": "http://c/"}, "@graph": document["@graph"]}  # type: ignore[index]
    for named in (imported, {**imported, "@context": "http://c/"}):
        with pytest.raises(SyntaxError, match="copies"):
            contexts.quads(json.dumps(named).encode())


def test_a_context_for_many_short_lines_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oxiseq.engine.events.messages.jsonld._REPEATED", 100_000)
    line = json.dumps({"@context": terms(1000)}).encode() + b"\n" + b'{"t1":1}\n' * 50
    reading = read_log(line, "messages-ndjsonld", 0)
    monkeypatch.undo()
    assert 0 < len(reading.time) < 50 and "too long for so many" in str(reading.reasons)
    assert len(read_log(line, "messages-ndjsonld", 0).time) == 50


@pytest.mark.parametrize(
    ("text", "format", "told"),
    [
        (b"<http://s> <http://p> " + triple_terms(20_000) + b" .\n", RdfFormat.N_TRIPLES, "triple terms"),
        (b"<http://s> <http://p> " + triple_terms(20_000) + b" .\n", RdfFormat.TURTLE, "triple terms"),
        (b"<http://s> <http://p> " + triple_terms(20_000, b" # .\n") + b" .", RdfFormat.TRIG, "triple terms"),
        (b"<http://s> <http://p> " + triple_terms(20_000, b"") + b" .", RdfFormat.TURTLE, "triple terms"),
        (elements(20_000), RdfFormat.RDF_XML, "elements"),
        (elements(200).replace(b"<e:p>", b"<e:p><!-- </a></a></a> -->"), RdfFormat.RDF_XML, "elements"),
        (elements(200).replace(b"<e:p>", b"<e:p><![CDATA[</a></a>]]>"), RdfFormat.RDF_XML, "elements"),
        (elements(200).replace(b"<e:T>", b"<e:T e:q='/>'>"), RdfFormat.RDF_XML, "elements"),
        (objects(2000), RdfFormat.JSON_LD, "JSON-LD"),
        (b"[" * 60_000 + b"]" * 60_000, RdfFormat.JSON_LD, "JSON-LD"),
    ],
)
def test_what_is_nested_deep_is_refused_whole_and_in_pieces(text: bytes, format: RdfFormat, told: str) -> None:
    with pytest.raises(SyntaxError, match=f"{told}.*nested"):
        parse(text, format)
    guarded = Guarded(io.BytesIO(text), format)
    with pytest.raises(SyntaxError, match=f"{told}.*nested"):
        while guarded.read(100):
            pass


def test_what_is_nested_deep_costs_its_line_or_body_alone() -> None:
    deep = b"<http://s> <http://p> " + triple_terms(20_000)
    assert read_batch(
        STAMP + deep + b" <http://e> .\n<http://s> <http://p> <http://o> <http://e> .\n", "nquads"
    ).rejected
    with pytest.raises(RejectedError, match="nested"):
        read_graph(deep + b" .", RdfFormat.TURTLE, 0)
    log = b'VERSION "1.2-messages"\n' + deep + b" .\nMESSAGE\n<http://s> <http://p> 1 .\nMESSAGE\n"
    reading = read_log(log, "messages-turtle", 0)
    assert (len(reading.time), reading.rejected) == (1, 1)


def test_what_is_not_nested_deep_is_read() -> None:
    flat = (
        b"<http://s> <http://p> " + triple_terms(3) + b" , " + triple_terms(3).replace(b'"1"', b'"<<( <<( "') + b" .\n"
    )
    assert sum(1 for _ in parse(flat * 200, RdfFormat.TURTLE)) == 400
    wide = elements(1).replace(b"<e:p></e:p>", b"<e:p>1</e:p><e:q/><!-- <a> -- ><a> -->" * 1000)
    assert sum(1 for _ in parse(wide.replace(b"-- >", b"- >"), RdfFormat.RDF_XML))
    assert sum(1 for _ in parse(b"[" + b",".join([objects(50)] * 500) + b"]", RdfFormat.JSON_LD)) == 25_000


def test_values_within_one_another_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oxiseq.engine.rdf.MOST_VALUES", 100_000)
    numbers = b"[" + b",".join(b"%d" % i for i in range(1000)) + b"]"
    deep = objects(200).replace(b"1}", numbers + b"}")
    with pytest.raises(SyntaxError, match="within one another"):
        parse(deep, RdfFormat.JSON_LD)
    assert sum(1 for _ in parse(objects(50).replace(b"1}", numbers + b"}"), RdfFormat.JSON_LD)) == 1049


@pytest.mark.parametrize(
    "read",
    [
        lambda text: parse(text, RdfFormat.JSON_LD).__next__,
        lambda text: lambda: rewritten(text, RdfFormat.JSON_LD, RdfFormat.N_QUADS),
        lambda text: lambda: load(Store().load, text, RdfFormat.JSON_LD),
        lambda text: lambda: read_graph(text, RdfFormat.JSON_LD, 0),
    ],
)
def test_parsing_ends_with_its_client(read: Callable[[bytes], Callable[[], Any]]) -> None:
    asked = 0

    def gone() -> bool:
        nonlocal asked
        asked += 1
        return asked > 2

    text = json.dumps(nodes(20_000, **{"http://e/p": "x" * 30})).encode()
    with attended(gone), pytest.raises(AbandonedError):
        work = read(text)
        while True:
            work()
    assert asked == 3


def test_the_count_of_copies_needs_no_more_than_the_document(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large file with one context at the top is read; one with more is refused without being held."""
    monkeypatch.setattr("oxiseq.engine.rdf.LARGEST", 10_000)
    text = json.dumps({"@context": terms(10), "@graph": nodes(1000, t1=1)}).encode()
    assert sum(1 for _ in parse(io.BytesIO(text), RdfFormat.JSON_LD)) == 1000
    with pytest.raises(SyntaxError, match="contexts within it"):
        list(parse(io.BytesIO(text[:-2] + b',{"@context":{}}]}'), RdfFormat.JSON_LD))
    assert jsonld.FewContexts().may_multiply(text + text)
