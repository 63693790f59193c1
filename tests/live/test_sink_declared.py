"""Sinks of the server's settings, and secrets that stand elsewhere."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from hot_service import HOT, LOOPBACK, hot
from live_services import eventually
from sink_receivers import Webhooks, webhooks

from oxiseq.journal import ConflictError
from oxiseq.sinks import Allowed, DeclaredSink, DeliveryError, SinkError, settings_of
from oxiseq.sinks import webhook as webhook_kind


@pytest.fixture
def receiver() -> Iterator[Webhooks]:
    with webhooks() as made:
        yield made


def declared(receiver: Webhooks, **more: Any) -> tuple[DeclaredSink, ...]:
    return (DeclaredSink.of({"query": "hot", "kind": "webhook", "url": receiver.url, **more}, "chat"),)


def test_a_sink_of_the_settings_delivers_from_its_querys_first_match_on_and_goes_on_after_a_restart(
    tmp_path: Path, receiver: Webhooks
) -> None:
    with hot(tmp_path, sinks_declared=declared(receiver)) as doors:  # there before its query
        doors.push(2)
        receiver.wait(2)
        eventually(lambda: doors.sink("chat")["delivered"] == 2)
        assert doors.sink("chat")["declared"] is True
        for refused in (
            doors.ask("PUT", "/queries/hot/sinks/chat", {"kind": "webhook", "url": receiver.url}),
            doors.ask("DELETE", "/queries/hot/sinks/chat"),
        ):
            assert refused[0] == 409 and "the server's settings" in refused[1]["detail"]
    with hot(tmp_path) as doors:  # a server, or a program, that does not know of it
        doors.push()
        assert doors.sink("chat")["refused"] == "the server's settings no longer name it"
    with hot(tmp_path, sinks_declared=declared(receiver, headers={"x": "y"})) as doors:
        doors.push()
        receiver.wait(4)
        assert receiver.keys == ["hot/1", "hot/2", "hot/3", "hot/4"] and receiver.seen[3][0]["x"] == "y"
    assert receiver.url.encode() not in b"".join(file.read_bytes() for file in tmp_path.glob("*journal*"))


def test_a_sink_that_was_put_and_is_then_declared_goes_on_where_it_stands(tmp_path: Path, receiver: Webhooks) -> None:
    with hot(tmp_path) as doors:
        doors.put("chat", {"kind": "webhook", "url": receiver.url})
        doors.push()
        eventually(lambda: doors.sink("chat")["delivered"] == 1)
    with hot(tmp_path, sinks_declared=declared(receiver, after=0)) as doors:
        doors.push()
        eventually(lambda: doors.sink("chat")["delivered"] == 2)
    assert receiver.keys == ["hot/1", "hot/2"]
    with hot(tmp_path) as doors:  # and it can be deleted when it is in the settings no more
        assert doors.ask("DELETE", "/queries/hot/sinks/chat")[0] == 204


def test_a_query_that_is_registered_again_has_its_sinks_of_the_settings_again(
    tmp_path: Path, receiver: Webhooks
) -> None:
    with hot(tmp_path, sinks_declared=declared(receiver)) as doors:
        doors.push()
        receiver.wait(1)
        doors.service.queries.delete("hot")
        doors.service.queries.register("hot", "SELECT ?s { ?s ?p ?o }", "sparql")  # has no matches, hence no sinks
        assert doors.ask("GET", "/queries/hot/sinks")[1] == {"sinks": []}
        doors.service.queries.delete("hot")
        doors.service.queries.register("hot", HOT)
        doors.push()
        receiver.wait(2)
        assert receiver.keys == ["hot/1", "hot/3"]  # ids are not used twice; 2 was the answer's


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "it needs query"),
        ({"query": "hot"}, "kind is one of"),
        ({"query": "hot", "kind": "file"}, "needs path"),
        ({"query": "hot", "kind": "file", "path": "x", "paht": 1}, "has no paht"),
        ({"query": "hot", "kind": "file", "path": "x", "after": -1}, "after is the id"),
        ({"query": 1, "kind": "file", "path": "x"}, "it needs query"),
    ],
)
def test_settings_that_cannot_be(given: dict[str, Any], said: str) -> None:
    with pytest.raises(SinkError, match=rf"^\[serve\.sinks\.log\]: .*{said}"):
        DeclaredSink.of(given, "log")
    with pytest.raises(SinkError, match="its name has"):
        DeclaredSink.of({"query": "hot", "kind": "file", "path": "x"}, "a/b")


def test_a_server_does_not_start_with_sinks_that_are_not_allowed(tmp_path: Path) -> None:
    log = DeclaredSink.of({"query": "hot", "kind": "file", "path": "x"}, "log")
    other = DeclaredSink.of({"query": "cold", "kind": "file", "path": "./x"}, "other")
    with pytest.raises(SinkError, match="--sink-folder"), hot(tmp_path, sinks_declared=(log,)):
        pass
    with (
        pytest.raises(ConflictError, match="writes to x"),
        hot(tmp_path, Allowed(folder=tmp_path), sinks_declared=(log, other)),
    ):
        pass
    with hot(tmp_path, Allowed(folder=tmp_path), sinks_declared=(other,)) as doors:
        status, value = doors.ask("PUT", "/queries/hot/sinks/log", {"kind": "file", "path": "x"})
        assert status == 409 and "writes to x" in value["detail"]


def test_secrets_stand_in_variables_and_files_and_are_read_again_when_the_receiver_is_opened_again(
    tmp_path: Path, receiver: Webhooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "chat").write_text("Bearer first-word\n")
    monkeypatch.setenv("OXISEQ_SECRET_CHAT", receiver.url)
    sink = {"kind": "webhook", "url": {"env": "OXISEQ_SECRET_CHAT"}, "headers": {"Authorization": {"file": "chat"}}}
    with hot(tmp_path, replace(LOOPBACK, secrets=secrets)) as doors:
        shown = doors.put("chat", sink)
        assert shown["url"] == sink["url"] and shown["headers"] == sink["headers"]
        doors.push()
        receiver.wait(1)
        (secrets / "chat").write_text("Bearer second-word")
        receiver.answer = lambda headers, _: (200 if headers["authorization"] == "Bearer second-word" else 401, {})
        doors.push()
        receiver.wait(2)
        (secrets / "chat").unlink()
        receiver.answer = lambda headers, _: (401, {})
        doors.push()
        eventually(lambda: "there is no secret 'chat'" in (doors.sink("chat")["error"] or ""))
        journal = b"".join(file.read_bytes() for file in tmp_path.iterdir() if file.is_file())
    assert b"secret-path" not in journal and b"first-word" not in journal


@pytest.mark.parametrize(
    ("secret", "said"),
    [
        ({"env": "OXISEQ_WRITE_TOKEN"}, "OXISEQ_SECRET_"),
        ({"env": "PATH"}, "OXISEQ_SECRET_"),
        ({"env": "OXISEQ_SECRET_NONE"}, "has no variable"),
        ({"file": "../outside"}, "not below"),
        ({"file": "/etc/passwd"}, "not below"),
        ({"file": "link"}, "not below"),
        ({"file": "pipe"}, "no file"),
        ({"file": "."}, "not below"),
        ({"file": "folder"}, "is no file|directory"),
        ({"file": "binary"}, "no text"),
        ({"file": "empty"}, "1 to 8000"),
        ({"file": "none"}, "there is no secret"),
        ({"file": "circle"}, "no path of a file"),
        ({"file": "\ud800"}, "no path of a file"),
        ({"env": "a", "file": "b"}, "is a text"),
        ({"file": 1}, "is a text"),
        ({}, "is a text"),
        ([], "is a text"),
    ],
)
def test_secrets_that_are_refused(tmp_path: Path, secret: Any, said: str) -> None:
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "folder").mkdir()
    (tmp_path / "outside").write_text("outside")
    (folder / "link").symlink_to(tmp_path / "outside")
    (folder / "circle").symlink_to(folder / "circle")
    os.mkfifo(folder / "pipe")
    (folder / "binary").write_bytes(b"\xff")
    (folder / "empty").write_bytes(b"")
    sink = {"kind": "webhook", "url": "http://localhost:9/x", "secret": secret}
    opened = len(os.listdir("/dev/fd"))
    with pytest.raises(SinkError, match=said):
        settings_of(sink).check(replace(LOOPBACK, secrets=folder))
    assert len(os.listdir("/dev/fd")) <= opened  # what earlier tests have left may be closed meanwhile


@pytest.mark.parametrize(
    ("name", "secret"),
    [("headers", "Bearer s3cr3t "), ("headers", " s3cr3t"), ("url", "http://h:s3cr3t/x"), ("url", "http://[s3cr3t/x")],
)
def test_a_secret_that_cannot_be_is_not_shown(name: str, secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OXISEQ_SECRET_CHAT", secret)
    where: Any = {"env": "OXISEQ_SECRET_CHAT"}
    value = where if name == "url" else {"Authorization": where}
    sink = {"kind": "webhook", "url": "http://localhost:9/x", name: value}
    with pytest.raises(SinkError) as caught:
        settings_of(sink).check(LOOPBACK)
    assert "s3cr3t" not in str(caught.value)


def test_without_a_folder_of_secrets_no_file_is_read(tmp_path: Path) -> None:
    sink = {"kind": "webhook", "url": "http://localhost:9/x", "secret": {"file": "chat"}}
    with hot(tmp_path) as doors:
        status, value = doors.ask("PUT", "/queries/hot/sinks/chat", sink)
    assert status == 400 and "--sink-secrets" in value["detail"]


def test_a_receiver_that_sends_secrets_back_does_not_have_them_shown(tmp_path: Path, receiver: Webhooks) -> None:
    receiver.said = b"no such hook: hook/secret-path, sent by Bearer s3cr3t-word, s3cr3t-word"
    receiver.answer = lambda headers, body: (403, {})
    with hot(tmp_path) as doors:
        doors.put("chat", {"kind": "webhook", "url": receiver.url, "headers": {"Authorization": "Bearer s3cr3t-word"}})
        doors.push()
        eventually(lambda: doors.sink("chat")["error"])
        error = doors.sink("chat")["error"]
    assert error.endswith("answers 403: no such hook: ***, sent by ***, ***")


def test_a_delivery_of_several_matches_that_is_tried_again_is_the_same_also_after_a_restart(
    tmp_path: Path, receiver: Webhooks
) -> None:
    tried: list[tuple[str, int]] = []
    well = Event()

    def answer(headers: Any, body: bytes) -> tuple[int, dict[str, str]]:
        value = json.loads(body)
        tried.append((headers["idempotency-key"], len(value) if isinstance(value, list) else 1))
        return (200 if well.is_set() else 503), {}

    def found(count: int) -> None:
        eventually(lambda: doors.service.journal.matches.last("hot") == count)

    receiver.answer = answer
    with hot(tmp_path) as doors:
        doors.push(3)
        found(3)
        doors.put("chat", {"kind": "webhook", "url": receiver.url, "batch": 10, "after": 0})
        eventually(lambda: len(tried) >= 1)
        doors.push(4)
        found(7)
        tries = len(tried)
        eventually(lambda: len(tried) > tries + 1)
    with hot(tmp_path) as doors:
        doors.put("chat", {"kind": "webhook", "url": receiver.url, "batch": 1})
        well.set()
        eventually(lambda: doors.sink("chat")["delivered"] == 7)
    first = [each for each in tried if each[0] == tried[0][0]]
    assert tried[0] == ("hot/1-3", 3) and tried[: len(first)] == first
    assert tried[len(first) :] == [(f"hot/{n}", 1) for n in range(4, 8)]
    with hot(tmp_path, Allowed(folder=tmp_path)) as doors:  # another kind does not take the note of the one before
        doors.put("chat", {"kind": "file", "path": "log.jsonl", "after": 0})
        eventually(lambda: doors.sink("chat")["delivered"] == 14)
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 7


def test_a_kill_between_the_note_of_a_delivery_and_its_request_changes_nothing_of_it(
    tmp_path: Path, receiver: Webhooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()

    def killed(*_: Any) -> str:
        if not after.exists():
            shutil.copytree(before, after)  # what is on the disk at this moment is what a kill leaves
        raise DeliveryError("it is gone")

    with hot(before) as doors:
        doors.push(3)
        eventually(lambda: doors.service.journal.matches.last("hot") == 3)
        with monkeypatch.context() as patched:
            patched.setattr(webhook_kind._Poster, "deliver", killed)
            doors.put("chat", {"kind": "webhook", "url": receiver.url, "batch": 10, "after": 0})
            eventually(lambda: doors.sink("chat")["error"])
            doors.ask("DELETE", "/queries/hot/sinks/chat")
    with hot(after) as doors:
        doors.push(2)
        receiver.wait(2)
    assert receiver.keys == ["hot/1-3", "hot/4-5"]


def test_a_put_does_not_wait_for_a_delivery_that_hangs(tmp_path: Path, receiver: Webhooks) -> None:
    reached, go_on = Event(), Event()

    def answer(headers: Any, body: bytes) -> tuple[int, dict[str, str]]:
        reached.set()
        return (200 if go_on.wait(60) else 500), {}

    receiver.answer = answer
    with hot(tmp_path) as doors:
        doors.put("chat", {"kind": "webhook", "url": receiver.url})
        doors.push()
        assert reached.wait(30)
        doors.put("chat", {"kind": "webhook", "url": receiver.url, "template": "{id}"})
        assert not go_on.is_set() and not receiver.seen  # else the request was waited for
        go_on.set()
        eventually(lambda: doors.sink("chat")["delivered"] == 1)
