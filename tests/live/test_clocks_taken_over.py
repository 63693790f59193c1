"""A query takes over the clocks of its streams and sees the instants that begin after its registration; its windows
begin with the first event that it sees: in memory, in a folder, at a server and after a restart alike."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live_services import eventually, live, rest
from profiles import drawn
from pyoxigraph import RdfFormat

import oxiseq
from oxiseq.api.store import Store
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.api import LiveRoutes
from oxiseq.live.intake import read_graph
from oxiseq.live.streams import Pushed
from oxiseq.served import places
from oxiseq.server import ServerSettings, Serving, create_app
from oxiseq.sparql import SparqlEndpoint

C, D = "http://ex/c", "http://ex/d"
P: Final = "PREFIX : <http://ex/> "
_PAIR: Final = "DEFINE GPM A ON D { ?a :a ?x } DEFINE GPM B ON D { ?b :b ?y }"
_FROM: Final = f"FROM STREAM D <{D}>"
_GONE: Final = f"{_FROM} FROM STREAM C <{C}> WHERE {{ SEQ(A; N!; B) {_PAIR} DEFINE GPM N ON C {{ ?n :n ?z }} }}"
QUERIES: Final[dict[str, tuple[str, str, dict[str, Any]]]] = {
    "follow": (P + f"SELECT ?a ?b {_FROM} WHERE {{ SEQ(A; B) {_PAIR} }}", "spaseq", {}),
    "gone": (P + "SELECT ?a ?b " + _GONE, "spaseq", {}),
    "tumbling": (P + f"SELECT ?a ?b WITHIN 4 SECONDS {_FROM} WHERE {{ SEQ(A; B) {_PAIR} }}", "spaseq", {}),
    "late": (P + f"SELECT ?a ?b {_FROM} WHERE {{ SEQ(A; B) {_PAIR} }}", "spaseq", {"lateness": "3s"}),
    "origin": (
        P + f"SELECT ?a ?b WITHIN 4 SECONDS {_FROM} WHERE {{ SEQ(A; B) {_PAIR} }}",
        "spaseq",
        {"origin": "1970-01-01T00:00:03Z"},
    ),
    "ceql": ("VOCAB <http://ex/> SELECT * FROM d WHERE (a AS x; b AS y) WITHIN 6 SECONDS", "ceql", {}),
    "epsparql": (P + f"SELECT ?a ?b FROM STREAM <{D}> WHERE {{ {{ ?a :a ?x }} SEQ {{ ?b :b ?y }} }}", "epsparql", {}),
    "rspql": (
        P + f"REGISTER RSTREAM <http://ex/o> AS SELECT ?a ?x FROM NAMED WINDOW <http://ex/w> ON <{D}> "
        "[RANGE PT4S STEP PT2S] WHERE { WINDOW <http://ex/w> { ?a :a ?x } }",
        "rspql",
        {},
    ),
    "ended": (
        P + f"REGISTER DSTREAM <http://ex/o> AS SELECT ?a FROM NAMED WINDOW <http://ex/w> ON <{D}> "
        "[RANGE PT4S STEP PT1S] WHERE { WINDOW <http://ex/w> { ?a :a ?x } } REPORT EVERY 1 SECONDS",
        "rspql",
        {},
    ),
}
LAST: Final = 60
Step = tuple[str, str, int]

step = st.one_of(
    st.tuples(st.just("push"), st.sampled_from(["ad", "bd", "nc", "ac"]), st.integers(0, 12)),
    st.tuples(st.just("advance"), st.sampled_from([C, D]), st.integers(0, 13)),
    st.tuples(st.just("register"), st.sampled_from([*QUERIES]), st.just(0)),
    st.tuples(st.just("restart"), st.just(""), st.just(0)),
)
scripts = st.lists(step, min_size=3, max_size=14)


@contextmanager
def served(knowledge: Store, service: LiveService) -> Iterator[str]:
    """The address of a server on a thread."""
    settings, endpoint = ServerSettings(port=0, threads=4), SparqlEndpoint(knowledge)
    routes = LiveRoutes(service, endpoint.evaluations)
    serving = Serving(create_app(endpoint, settings, routes), settings, service.end_subscriptions)
    thread = threading.Thread(target=serving.run)
    thread.start()
    try:
        yield serving.address
    finally:
        serving.stop()
        thread.join(30)


class Kind:
    """A store under test; `restart` opens it again where it outlives that."""

    def __init__(self, opened: ExitStack) -> None:
        self.opened = opened
        self.names: dict[str, str] = {}

    def store(self) -> Any:
        raise NotImplementedError

    def restart(self) -> None:
        pass


class InMemory(Kind):
    def __init__(self, opened: ExitStack) -> None:
        super().__init__(opened)
        self._store = opened.enter_context(oxiseq.open())

    def store(self) -> Any:
        return self._store


class InFolder(Kind):
    def __init__(self, opened: ExitStack, folder: Path) -> None:
        super().__init__(opened)
        self._folder, self._held = folder, opened.enter_context(ExitStack())
        self.restart()

    def restart(self) -> None:
        self._held.close()
        self._store = self._held.enter_context(oxiseq.open(self._folder))

    def store(self) -> Any:
        return self._store


class AtServer(Kind):
    def __init__(self, opened: ExitStack, folder: Path) -> None:
        super().__init__(opened)
        self._folder, self._held = folder, opened.enter_context(ExitStack())
        self.restart()

    def restart(self) -> None:
        self._held.close()
        self._folder.mkdir(parents=True, exist_ok=True)
        knowledge = Store()
        service = self._held.enter_context(live(self._folder, LiveSettings(idle=None), knowledge))
        self._store = self._held.enter_context(oxiseq.open(self._held.enter_context(served(knowledge, service))))
        self._service: LiveService = service

    def store(self) -> Any:
        rest(self._service)
        return self._store


def played(kind: Kind, script: list[Step], ended: tuple[str, ...]) -> list[tuple[str, list[Any]]]:
    """What each query has found in the end, when these streams have ended."""
    numbers, registered = count(), list[tuple[str, str]]()
    for iri in (C, D):
        kind.store().stream(iri).advance(-10)
    for what, which, time in script:
        if what == "push":
            letter, iri = which[0], f"http://ex/{which[1]}"
            subject = f"<http://ex/{letter}{next(numbers)}>"
            body = f"{subject} a <http://ex/{letter}> ; <http://ex/{letter}> 1 ."
            kind.store().stream(iri).push(body, time * 1_000_000)
        elif what == "advance":
            kind.store().stream(which).advance(time * 1_000_000)
        elif what == "register":
            text, language, options = QUERIES[which]
            name = f"{which}-{len(registered)}"
            kind.store().register(text, language, name=name, **options)
            registered.append((which, name))
        else:
            kind.restart()
    for iri in ended:
        kind.store().stream(iri).advance(LAST * 1_000_000)
    found = []
    for which, name in registered:
        matches = kind.store().find(name).matches()
        found.append((which, sorted(told(match) for match in matches)))
    return found


def told(match: Any) -> str:
    values = {name: str(match[name]) for name in match.variables} if hasattr(match, "variables") else {}
    return f"{match.at} {values or match}"


@pytest.fixture(autouse=True)
def _no_idle_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Time goes on by what is pushed alone."""
    monkeypatch.setattr(places, "LiveSettings", partial(LiveSettings, idle=None))
    yield


def everywhere(script: list[Step], folder: Path, ended: tuple[str, ...] = (C, D)) -> list[tuple[str, list[Any]]]:
    """What is found, the same in all kinds of store."""
    with ExitStack() as opened:
        kinds = [InMemory(opened), InFolder(opened, folder / "folder"), AtServer(opened, folder / "server")]
        found = [played(kind, script, ended) for kind in kinds]
    assert found[0] == found[1] == found[2]
    return found[0]


def test_one_whose_stream_was_advanced_past_the_coming_events_answers(tmp_path: Path) -> None:
    script = [("advance", C, 50), ("register", "gone", 0), ("push", "ad", 5), ("restart", "", 0), ("push", "bd", 6)]
    ((_, found),) = everywhere([*script, ("push", "ad", 7)], tmp_path, (D,))
    assert len(found) == 1


def test_an_instant_that_has_begun_is_not_seen(tmp_path: Path) -> None:
    script = [("push", "nc", 3), ("push", "ad", 4), ("register", "gone", 0), ("register", "follow", 0)]
    for more in ([], [("restart", "", 0)]):
        after = [("push", "ad", 4), ("push", "bd", 5), ("push", "ad", 6), ("push", "bd", 8)]
        found = everywhere([*script, *more, *after], tmp_path / str(len(more)))
        assert [len(each) for _, each in found] == [1, 1]  # a@4 is half of an instant


def test_windows_begin_at_the_first_event_that_is_seen(tmp_path: Path) -> None:
    script = [("push", "ad", 1), ("register", "tumbling", 0), ("push", "ad", 1), ("restart", "", 0)]
    # seen from 3 on: [3, 7), [7, 11)
    after = [("push", "ad", 3), ("push", "bd", 6), ("push", "ad", 7), ("restart", "", 0), ("push", "bd", 10)]
    ((_, found),) = everywhere([*script, *after, ("push", "bd", 11)], tmp_path)
    assert len(found) == 2


def test_all_tell_at_which_tick_windows_become_empty_and_so_does_a_replay(tmp_path: Path) -> None:
    times = (1, 3, 9)
    ((_, found),) = everywhere([("register", "ended", 0), *(("push", "ad", at) for at in times)], tmp_path)
    text, language, _ = QUERIES["ended"]
    events = [(at * 1_000_000, f"<http://ex/a{number}> <http://ex/a> 1 .") for number, at in enumerate(times)]
    replayed = oxiseq.run(text, {D: events}, language=language)  # type: ignore[call-overload]
    assert sorted(map(told, replayed)) == found
    assert [each.split()[1] for each in found] == ["00:00:05+00:00", "00:00:07+00:00", "00:00:13+00:00"]


def test_idle_time_completes_what_waits_and_not_what_lies_ahead(tmp_path: Path) -> None:
    hour = 3_600_000_000
    with live(tmp_path, LiveSettings(idle=0.05)) as service:
        for iri in (C, D):
            service.streams.create(iri)
        push(service, C, "n", hour)  # its clock is ahead by an hour
        service.streams.advance(C, 2 * hour)
        text, language, _ = QUERIES["gone"]
        service.queries.register("q", text, language)
        for time in (1, 2, 3, 4):
            assert push(service, D, "ab"[time % 2 == 0], 1_000_000 * time).late == 0  # also after a silence
            eventually(lambda time=time: service.journal.queries.get("q").next == 1 + time // 2, 20)  # type: ignore[misc]


def push(service: LiveService, iri: str, letter: str, time: int) -> Pushed:
    body = f"<http://ex/{letter}> <http://ex/{letter}> 1 ."
    return service.streams.push(iri, lambda: read_graph(body.encode(), RdfFormat.TURTLE, time), body.encode())


@drawn(30)
@given(script=scripts)
def test_every_kind_of_store_finds_the_same(script: list[Step], tmp_path_factory: pytest.TempPathFactory) -> None:
    everywhere(script, tmp_path_factory.mktemp("stores"))
