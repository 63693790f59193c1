"""Contexts of JSON-LD that are fetched when a mapping is written."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable

import pytest

import oxiseq
from oxiseq.mappings import declared
from oxiseq.mappings.declared import fetched

httpx = pytest.importorskip("httpx", reason="httpx is not installed: pip install 'oxiseq[client]'")
AT, OTHER = "https://example.org/c.jsonld", "http://example.org/other.jsonld"
CONTEXT = {"@context": {"id": "@id", "celsius": "http://example.org/celsius"}}


def served(answer: Callable[[str], tuple[int, dict[str, str], bytes]]) -> httpx.MockTransport:
    def answered(request: httpx.Request) -> httpx.Response:
        status, headers, body = answer(str(request.url))
        return httpx.Response(status, headers=headers, content=iter([body]))

    return httpx.MockTransport(answered)


def ok(value: object) -> httpx.MockTransport:
    return served(lambda url: (200, {}, json.dumps(value).encode()))


def test_what_is_null_is_fetched_and_the_rest_stays() -> None:
    asked: list[str] = []

    def answer(url: str) -> tuple[int, dict[str, str], bytes]:
        asked.append(url)
        if url == AT:
            return 302, {"location": "/moved"}, b""
        return 200, {}, json.dumps({**CONTEXT, "more": 1}).encode()

    given = {"time": "ts", "contexts": {AT: None, OTHER: {"@context": {}}}}
    assert fetched(given, served(answer)) == {"time": "ts", "contexts": {AT: CONTEXT, OTHER: {"@context": {}}}}
    assert asked == [AT, "https://example.org/moved"]
    assert given["contexts"][AT] is None  # type: ignore[index]


@pytest.mark.parametrize("given", [{}, {"contexts": {}}, {"contexts": {AT: CONTEXT}}, {"contexts": 5}])
def test_nothing_is_asked_for_what_is_there(given: dict[str, object]) -> None:
    def answer(url: str) -> tuple[int, dict[str, str], bytes]:
        raise AssertionError(url)

    assert fetched(given, served(answer)) == given


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"no json", "is no JSON"),
        (b"[" * 100_000, "is no JSON"),
        (b'{"id": 1}', 'has no "@context"'),
        (b"[]", 'has no "@context"'),
        (b"", "is no JSON"),
    ],
)
def test_what_is_no_context(body: bytes, said: str) -> None:
    with pytest.raises(oxiseq.OxiseqError, match=said):
        fetched({"contexts": {AT: None}}, served(lambda url: (200, {}, body)))


def test_answers_that_do_not_come_or_do_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {"contexts": {AT: None}}
    with pytest.raises(oxiseq.OxiseqError, match="status 404"):
        fetched(wanted, served(lambda url: (404, {}, b"")))
    with pytest.raises(oxiseq.OxiseqError, match="redirects"):
        fetched(wanted, served(lambda url: (302, {"location": url}, b"")))
    monkeypatch.setattr(declared, "_LARGEST", 10)
    with pytest.raises(oxiseq.OxiseqError, match="has more than 10 bytes"):
        fetched(wanted, ok(CONTEXT))
    monkeypatch.setattr(declared, "_DEADLINE", -1.0)
    with pytest.raises(oxiseq.OxiseqError, match="took more than"):
        fetched(wanted, served(lambda url: (200, {}, b"{}")))


def test_a_packed_answer_is_refused() -> None:
    """A few bytes may unpack to any size."""
    packed = served(lambda url: (200, {"content-encoding": "gzip"}, gzip.compress(json.dumps(CONTEXT).encode())))
    with pytest.raises(oxiseq.OxiseqError, match="is packed by gzip, unasked"):
        fetched({"contexts": {AT: None}}, packed)


@pytest.mark.parametrize("iri", ["file:///etc/hosts", "urn:c", "c.jsonld", "http://", ""])
def test_other_addresses_are_refused(iri: str) -> None:
    with pytest.raises(oxiseq.OxiseqError, match="contexts: "):
        fetched({"contexts": {iri: None}}, ok(CONTEXT))


def test_too_many() -> None:
    with pytest.raises(oxiseq.OxiseqError, match="at most 100 are fetched, not 101"):
        fetched({"contexts": {f"http://example.org/{i}": None for i in range(101)}}, ok(CONTEXT))


def test_a_mapping_with_null_says_what_to_do() -> None:
    with pytest.raises(oxiseq.OxiseqError, match="is null: `oxiseq mapping fetch`"):
        oxiseq.StreamMapping({"contexts": {AT: None}})


def test_contexts_that_name_further_ones() -> None:
    base = "https://example.org/"
    there = {
        f"{base}a/c.jsonld": {
            "@context": ["d.jsonld", {"@import": "/e.jsonld", "t": {"@id": "x:t", "@context": "d.jsonld"}}]
        },
        f"{base}a/d.jsonld": {"@context": {"id": "@id"}},
        f"{base}e.jsonld": {"@context": {"v": "http://e/v"}},
    }
    found = fetched(
        {"contexts": {f"{base}a/c.jsonld": None}}, served(lambda url: (200, {}, json.dumps(there[str(url)]).encode()))
    )
    assert sorted(found["contexts"]) == sorted(there)
    assert oxiseq.StreamMapping(found).contexts.written_out({"@context": f"{base}a/c.jsonld", "id": "a:b", "v": 1})
