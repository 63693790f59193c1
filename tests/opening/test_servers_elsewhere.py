"""What `oxiseq.open(url)` does with servers that go, refuse, or are none; and what `oxiseq.open` refuses."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opened_stores import opened, serving

import oxiseq
from oxiseq.journal import ConflictError, CursorError, UnknownError
from oxiseq.live import LiveSettings
from oxiseq.rights import Token, digest_of, grant_of, line_of
from oxiseq.served import RefusedError, ServedQuery, ServedStream, UnreachableError
from oxiseq.served.knowledge import ServedKnowledge
from oxiseq.served.query import SOON
from oxiseq.served.wire import wire_to
from oxiseq.server import Tokens

E = "http://e/"
S = E + "S"
GRAPH = f"<{E}x> <{E}p> {{}} ."
TEXT = f"PREFIX : <{E}> SELECT ?a FROM STREAM S <{S}> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?x :p ?a }} }}"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("wrong", ["http://", "http://[", "https://127.0.0.1:1", "http://127.0.0.1:1"])
def test_where_no_server_is(wrong: str) -> None:
    begun = time.monotonic()
    with pytest.raises(oxiseq.OxiseqError):
        oxiseq.open(wrong, patience="100ms")
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize("wrong", [3, b"x", ["a"], object(), ""])
def test_what_is_no_place(wrong: Any) -> None:
    with pytest.raises((oxiseq.OxiseqError, TypeError)):
        oxiseq.open(wrong)


def test_a_folder_that_is_open_or_is_a_file(tmp_path: Path) -> None:
    with oxiseq.open(tmp_path / "store"), pytest.raises(oxiseq.OxiseqError, match="open already"):
        oxiseq.open(tmp_path / "store")
    (tmp_path / "file").write_text("")
    with pytest.raises(oxiseq.OxiseqError):
        oxiseq.open(tmp_path / "file")
    with pytest.raises(oxiseq.OxiseqError, match="token"):
        oxiseq.open(tmp_path / "store", token="x")
    with pytest.raises(oxiseq.OxiseqError, match="token"):
        oxiseq.open(token="x")  # type: ignore[call-overload]


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    for store in (oxiseq.open(), oxiseq.open(tmp_path / "store")):
        stream = store.stream(S)
        store.close()
        store.close()
        for asked in (
            lambda store=store: len(store),
            lambda store=store: store.stream(f"{S}/new"),
            lambda store=store: store.stream(S),
            lambda store=store: store.register(
                f"SELECT ?x FROM STREAM <{S}> [RANGE PT1S] WHERE {{ ?x ?p ?o }}", "rspql"
            ),
            lambda stream=stream: stream.push("<http://e/a> <http://e/b> 1 .", 5),
            lambda stream=stream: stream.extend([(5, "<http://e/a> <http://e/b> 1 .")]),
            lambda stream=stream: stream.advance(5),
        ):
            with pytest.raises(oxiseq.OxiseqError, match="closed"):
                asked()


def test_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(tmp_path / "j", Tokens("looks", "writes")) as address:
        with pytest.raises(RefusedError):
            oxiseq.open(address)
        with oxiseq.open(address, token="looks") as reader, pytest.raises(RefusedError):
            reader.stream(S)
        monkeypatch.setenv("OXISEQ_TOKEN", "writes")
        with oxiseq.open(address) as writer:
            writer.stream(S).push(GRAPH.format(1), 1)
            assert writer.stream(S).events == 1


def test_named_tokens(tmp_path: Path) -> None:
    rights = {"pushes": [f"push:stream:{S}"], "looks": ["read:query:mine-*"], "mine": ["register:query:mine-*", "read"]}
    lines = [line_of(Token(name, digest_of(name), tuple(map(grant_of, given)))) for name, given in rights.items()]
    with serving(tmp_path / "j", Tokens(lines="\n".join(lines))) as address, ExitStack() as stores:
        pushes, looks, mine = (stores.enter_context(oxiseq.open(address, token=name)) for name in rights)
        stream = pushes.stream(S)  # makes it
        found = mine.register(TEXT, name="mine-1")
        stream.push(GRAPH.format(1), 1)
        stream.advance(5)
        assert next(iter(found.poll("30s")))["a"].value == "1"
        assert [query.name for query in looks.queries] == ["mine-1"]
        for refused in (
            lambda: pushes.stream(f"{S}/other"),
            lambda: looks.stream(S),
            lambda: stream.events,
            lambda: mine.register(TEXT, name="yours"),
            lambda: pushes.update("CLEAR ALL"),
        ):
            with pytest.raises(RefusedError, match="does not have the right"):
                refused()


def test_a_server_that_is_away_for_a_while_is_waited_for(tmp_path: Path) -> None:
    port = free_port()

    @contextmanager
    def up() -> Iterator[None]:
        with serving(tmp_path / "j", port=port):
            yield

    with up(), oxiseq.open(f"http://127.0.0.1:{port}") as store:
        query = store.register(TEXT, name="all")
        store.stream(S).push(GRAPH.format(1), 1)
        waiting = query.poll("120s")
        seen = [next(waiting).id]

    def back() -> None:
        time.sleep(0.5)
        with up():
            done.wait(60)

    done = threading.Event()
    server = threading.Thread(target=back)
    server.start()
    try:
        with oxiseq.open(f"http://127.0.0.1:{port}", patience="60s") as store:
            store.stream(S).push(GRAPH.format(2), 2, key="two")
            store.stream(S).push(GRAPH.format(2), 2, key="two")
            with pytest.raises(ConflictError):
                store.stream(S).push(GRAPH.format(3), 2, key="two")
            query = store.register(TEXT, name="all")
            query.cursor = seen[-1] or 0
            store.advance(10)
            seen.append(next(query.poll("60s")).id)
            assert seen == [1, 2] and store.stream(S).events == 2
    finally:
        done.set()
        server.join()


def test_a_server_that_goes_while_one_waits(tmp_path: Path) -> None:
    with serving(tmp_path / "j") as address:
        store = oxiseq.open(address, patience="0s")
        query = store.register(TEXT)
    with pytest.raises(UnreachableError):
        list(query.poll("1s"))
    with pytest.raises(UnreachableError):
        store.stream(S)
    store.close()


def test_what_is_no_longer_kept_is_told(tmp_path: Path) -> None:
    with (
        serving(tmp_path / "j", settings=LiveSettings(matches=5, recent=1, upkeep=0.05)) as address,
        oxiseq.open(address) as store,
    ):
        query = store.register(TEXT)
        store.stream(S).extend([(n, GRAPH.format(n)) for n in range(1, 1000)])
        store.advance(10_000)
        end = time.monotonic() + 60
        while query.status["matches"]["first"] == 1 and time.monotonic() < end:
            store.stream(S).push(GRAPH.format(1), int(time.monotonic() * 1e6))
            time.sleep(0.05)
        query.cursor = 0
        with pytest.raises(CursorError):
            next(query.poll("60s"))
        with pytest.raises(CursorError):
            query.matches(after=1)
        match = None
        while match is None:
            with suppress(CursorError):  # more may be deleted meanwhile
                match = next(query.poll("5s"), None)
        assert match.id == query.cursor > 998


def test_a_query_is_paused_deleted_and_replaced(tmp_path: Path) -> None:
    with oxiseq.open(tmp_path / "store") as store:
        query = store.register(TEXT, name="all")
        query.pause()
        store.stream(S).push(GRAPH.format(1), 1)
        assert query.status["state"] == "paused" and query.match_count == 0
        query.resume()
        store.advance(5)
        assert next(query.poll("60s")).id == 1
        other = store.register(TEXT, name="all", lateness="1s", replace=True)
        assert (other.status["lateness"], "GPM A" in str(other.explain()) or bool(other.explain())) == ("1s", True)
        assert [each.gpm for each in other.why().gpms] == ["A"]
        other.delete()
        assert list(other.poll("5s")) == [] and other.closed and store.queries == ()


def test_in_memory_the_newest_matches_are_kept() -> None:
    with oxiseq.open() as store:
        query = store.register(TEXT, keep=10)
        for n in range(100):
            store.stream(S).push(GRAPH.format(n), n)
        store.advance(200)
        with pytest.raises(CursorError):
            next(query.poll("0s"))
        kept = query.matches()
        assert kept[len(kept) - 1].id == query.match_count == 100 and 10 <= len(kept) <= 20
        for wrong in (0, -1, True, "10", 1.5):
            with pytest.raises(oxiseq.OxiseqError, match="keep"):
                store.register(TEXT, keep=wrong)  # type: ignore[call-overload]


def test_in_memory_two_threads_share_the_matches_of_a_query() -> None:
    with oxiseq.open() as store:
        query = store.register(TEXT)
        seen: list[int | None] = []
        errors: list[BaseException] = []

        def work() -> None:
            try:
                seen.extend(match.id for match in query.poll("1s"))
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for n in range(1, 301):
            store.stream(S).push(GRAPH.format(n), n * 1000)
        for thread in threads:
            thread.join()
        assert errors == [] and sorted(id or 0 for id in seen) == list(range(1, 301))


@contextmanager
def answering(status: int, kind: str, body: bytes) -> Iterator[str]:
    """The address of something that answers all requests alike."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            self.send_response(status)
            for name, value in (("content-type", kind), ("location", "https://e/"), ("content-length", len(body))):
                self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_PUT = do_GET

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    "other",
    [
        (200, "text/html", b"<p>Sign in"),
        (200, "application/json", b"[]"),
        (200, "application/json", b"{}"),
        (301, "text/html", b""),
        (308, "text/html", b"moved"),
    ],
)
def test_what_is_no_server_of_ours_is_not_taken_for_one(other: tuple[int, str, bytes]) -> None:
    with answering(*other) as address:
        with pytest.raises(UnreachableError):
            oxiseq.open(address, patience="0s")
        if other[1] == "text/html":  # it stands between since the store was opened
            wire = wire_to(address, None, 0)
            with pytest.raises(UnreachableError):
                ServedKnowledge(wire).update("INSERT DATA { <x:a> <x:b> <x:c> }")
            with pytest.raises(UnreachableError):
                oxiseq.Stream(S, ServedStream(S, wire)).push(GRAPH.format(1), 1)
            wire.close()


@pytest.mark.parametrize("token", ["secret\n", " secret", "geheim\u00e4", "a\nb"])
def test_a_token_that_cannot_be_sent_is_told_at_once(token: str) -> None:
    begun = time.monotonic()
    with pytest.raises(RefusedError, match="cannot be sent"):
        oxiseq.open("http://127.0.0.1:1", token=token, patience="60s")
    assert time.monotonic() - begun < 20


def test_names_and_keys_that_cannot_be_sent(tmp_path: Path) -> None:
    for kind in ("folder", "server"):
        with opened(kind, tmp_path) as store:
            for name in ("", ".", "..", "x" * 100_000):
                with pytest.raises(UnknownError):
                    store.find(name)
                with pytest.raises(oxiseq.OxiseqError):
                    store.stream(name)
                with pytest.raises(oxiseq.OxiseqError):
                    store.register(TEXT, name=name, replace=True)
            begun = time.monotonic()
            for key in ("", "\u00e4", "a\nb", " a ", "x" * 201, 5):
                with pytest.raises(oxiseq.OxiseqError, match="key"):
                    store.stream(S).push(GRAPH.format(1), 1, key=key)
            assert store.stream(S).events == 0 and time.monotonic() - begun < 20


def test_places_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for wrong in ("HTTP://127.0.0.1:1", "http://" + "x" * 300 + ".e"):
        with pytest.raises(UnreachableError):
            oxiseq.open(wrong, patience="0s")
    with pytest.raises(oxiseq.OxiseqError, match="no folder"):
        oxiseq.open("a\0b")
    with pytest.raises(oxiseq.OxiseqError, match="a store elsewhere is at http:// or https://"):
        oxiseq.open("ftp://127.0.0.1/x")
    assert list(tmp_path.iterdir()) == []


def test_what_only_a_store_here_has() -> None:
    knowledge = ServedKnowledge(wire_to("http://127.0.0.1:1", None, 0))
    assert not hasattr(knowledge, "backup") and not hasattr(knowledge, "nothing")
    with pytest.raises(oxiseq.OxiseqError, match="`oxiseq backup` makes one"):
        knowledge.backup  # noqa: B018


def test_a_server_that_falls_silent_while_one_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SOON, "within", 0.5)
    with serving(tmp_path / "j") as address, oxiseq.open(address) as store:
        value = store.register(TEXT, name="all").status
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(50)
        wire = wire_to(f"http://127.0.0.1:{silent.getsockname()[1]}", None, 60)
        begun = time.monotonic()
        for timeout in ("0s", "500ms"):
            with pytest.raises(UnreachableError):
                list(oxiseq.ContinuousQuery(ServedQuery(wire, value), value).poll(timeout))
        assert time.monotonic() - begun < 20
        wire.close()


def test_what_a_text_of_before_has_found_is_told_once_and_gone_on_behind(tmp_path: Path) -> None:
    with oxiseq.open(tmp_path / "store") as store:
        query = store.register(TEXT, name="all")
        for n, text in enumerate((TEXT.replace("?a", "?b"), TEXT)):
            store.register(text, name="all", replace=True)
            store.stream(S).push(GRAPH.format(n), 1000 * n + 1)
            store.advance(1000 * n + 10)
            end = time.monotonic() + 60
            while query.match_count <= n and time.monotonic() < end:
                time.sleep(0.02)

        async def first() -> int | None:
            async for match in query:
                return match.id
            return None

        for read in (lambda: next(query.poll("0s")).id, lambda: asyncio.run(asyncio.wait_for(first(), 30))):
            query.cursor = 0
            with pytest.raises(oxiseq.OxiseqError, match="another text"):
                read()
            assert (query.cursor, read()) == (1, 2)
