"""Logs of RDF messages over HTTP: pushed and read back, by the version in the media type or in the text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote

import pytest
from http_client import Answer, ask
from test_live_http import EX, server

V: Final = 'VERSION "1.2-messages"\n'
AT: Final = "<http://www.w3.org/ns/prov#generatedAtTime>"
VERSIONED: Final = "; version=1.2-messages"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with server(tmp_path_factory.mktemp("messages")) as address:
        yield address


def stream(name: str) -> str:
    return f"/streams/{quote(EX + name, safe='')}"


def post(address: str, name: str, media_type: str, body: str, parameters: str = "") -> Answer:
    ask(address, "PUT", stream(name))
    return ask(address, "POST", stream(name) + parameters, [("Content-Type", media_type)], body.encode())


def events(address: str, name: str, accepted: str) -> Answer:
    return ask(address, "GET", stream(name) + "/events", [("Accept", accepted)])


def told(answer: Answer) -> tuple[int, int]:
    """Events accepted and rejected."""
    assert answer.status == 200, answer.body
    value: dict[str, Any] = json.loads(answer.body)
    return value["accepted"], value["rejected"]


def message(number: int) -> str:
    return f"_:t {AT} {number} .\n<urn:s> <urn:p> <urn:o> .\n"


@pytest.mark.parametrize("media_type", ["text/turtle", "application/trig"])
def test_the_version_or_the_text_says_so(address: str, media_type: str) -> None:
    log = "MESSAGE\n".join(map(message, range(3)))
    assert told(post(address, "said", media_type + VERSIONED, log)) == (3, 0)
    assert told(post(address, "said", media_type + '; charset=utf-8; version="1.1-messages"', log)) == (3, 0)
    assert told(post(address, "said", media_type, V + log)) == (3, 0)


def test_one_bad_message_is_rejected_alone(address: str) -> None:
    log = "MESSAGE\n".join([message(1), "<urn:a> <urn:b> c .\n", message(3), "<urn:s> <urn:p> 1 .\n"])
    answer = post(address, "bad", "text/turtle" + VERSIONED, log)
    assert told(answer) == (2, 2)
    assert [reason["line"] for reason in json.loads(answer.body)["reasons"]] == [4, 8]
    assert told(post(address, "timed", "text/turtle" + VERSIONED, log, "?time=9")) == (3, 1)
    assert post(address, "bad", "text/turtle" + VERSIONED, "<urn:a> <urn:b> c .").status == 400


def test_a_message_may_be_stamped_on_arrival(address: str) -> None:
    one = post(address, "stamped", "text/turtle", V + "<urn:s> <urn:p> 1 .", "?time=arrival")
    assert told(one) == (1, 0)
    assert "time" in json.loads(one.body)
    log = V + "<urn:s> <urn:p> 1 . MESSAGE <urn:s> <urn:p> 2 ."
    two = post(address, "stamped", "text/turtle", log, "?time=arrival")
    assert two.status == 400
    assert "a log of one message, not of 2" in json.loads(two.body)["detail"]


@pytest.mark.parametrize(
    "media_type",
    ["application/n-quads", "application/trig", "application/n-triples", "text/turtle", "application/x-ld+ndjson"],
)
def test_they_are_read_back(address: str, media_type: str) -> None:
    name = media_type.rpartition("/")[2]
    post(address, name, "text/turtle" + VERSIONED, "MESSAGE\n".join(map(message, range(3))))
    accepted = media_type if "json" in media_type else media_type + VERSIONED
    got = events(address, name, accepted)
    assert got.status == 200
    assert got.headers["content-type"] == accepted
    text = got.body.decode()
    assert "json" in media_type or (text.startswith(V) and text.count("MESSAGE\n") == 3)
    assert told(post(address, name + "2", accepted, text)) == (3, 0)
    plain = [events(address, each, "*/*").body for each in (name, name + "2")]
    assert plain[0] == plain[1]
    assert b"MESSAGE" not in plain[0]


def test_triples_are_offered_as_messages_only(address: str) -> None:
    ask(address, "PUT", stream("said"))
    assert events(address, "said", "text/turtle").status == 406
