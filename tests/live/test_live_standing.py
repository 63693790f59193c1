"""Queries over the store in the service: what a reader is told adds up to the answer, over updates, restarts, pauses,
retention, damage and full disks."""

from __future__ import annotations

import random
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from answer_followers import Follower, asked
from live_services import eventually, live

from oxiseq.api.store import Store
from oxiseq.engine.errors import LimitError
from oxiseq.engine.standing import Question, Solutions
from oxiseq.engine.standing import asked as answer_of
from oxiseq.grammar import QueryError
from oxiseq.journal import FILE_NAME, ConflictError, CursorError, FullError, UnknownError
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.settings import BoundError

P = "PREFIX : <http://e/> "
FRIENDS = P + "SELECT ?who (COUNT(*) AS ?n) WHERE { ?who :knows ?whom } GROUP BY ?who"
PAIRS = P + "SELECT ?a ?c WHERE { ?a :knows ?b . ?b :knows ?c FILTER NOT EXISTS { ?a :knows ?c } }"
OTHERS = P + "SELECT ?whom WHERE { ?who :knows ?whom }"
UPDATES = [
    "INSERT DATA {{ {0} :knows {1} }}",
    "DELETE DATA {{ {0} :knows {1} }}",
    "DELETE {{ {0} :knows ?x }} INSERT {{ ?x :knows {1} }} WHERE {{ {0} :knows ?x }}",
]
QUICK = LiveSettings(idle=None, heartbeat=0.05)


def change(store: Store, drawn: random.Random, people: int = 5) -> None:
    """One of many updates."""
    a, b = (f":p{drawn.randrange(people)}" for _ in range(2))
    store.update(P + drawn.choice(UPDATES).format(a, b))


def register(service: LiveService, name: str, text: str, *, replace: bool = True) -> None:
    service.queries.register(name, text, "sparql", replace=replace)


def last(service: LiveService, name: str) -> int:
    """The id of the last change that updates made so far have led to."""
    return service.standing.answer(name).number


def heard(service: LiveService, name: str, follower: Follower | None = None) -> Follower:
    return (follower or Follower()).listen(service, name, last(service, name))


@pytest.mark.parametrize("seed", range(4))
def test_a_reader_has_the_answer_after_every_update(tmp_path: Path, seed: int) -> None:
    drawn, store = random.Random(seed), Store()
    with live(tmp_path, QUICK, store) as service:
        for name, text in (("friends", FRIENDS), ("pairs", PAIRS), ("others", OTHERS)):
            register(service, name, text)
        readers = {"friends": Follower(), "pairs": Follower(), "others": Follower()}
        for _ in range(15):
            change(store, drawn)
            for name, text in (("friends", FRIENDS), ("pairs", PAIRS), ("others", OTHERS)):
                assert heard(service, name, readers[name]).rows == asked(store, text)
        assert all(reader.told.count("snapshot") == 1 for reader in readers.values())


@pytest.mark.parametrize("matches", [8, 1_000_000])
def test_readers_go_on_over_restarts(tmp_path: Path, matches: int) -> None:
    """Though the store changes while nobody looks, and changes before the last few are deleted."""
    drawn, store, reader = random.Random(matches), Store(), Follower()
    settings = LiveSettings(idle=None, heartbeat=0.05, matches=matches)
    with live(tmp_path, settings, store) as service:
        register(service, "pairs", PAIRS)
        heard(service, "pairs", reader)
    for _ in range(12):
        change(store, drawn)
        with live(tmp_path, settings, store) as service:
            change(store, drawn)
            assert heard(service, "pairs", reader).rows == asked(store, PAIRS)
            service.journal.retain()
            assert heard(service, "pairs").rows == asked(store, PAIRS)
    assert reader.told.count("snapshot") == 1


def test_a_cursor_that_is_too_old_begins_with_the_answer(tmp_path: Path) -> None:
    store, reader = Store(), Follower()
    with live(tmp_path, LiveSettings(idle=None, heartbeat=0.05, matches=4, recent=2), store) as service:
        register(service, "others", OTHERS)
        heard(service, "others", reader)
        for number in range(10):
            store.update(P + f"INSERT DATA {{ :a :knows :p{number} }}")
            last(service, "others")
        service.journal.retain()
        assert heard(service, "others", reader).rows == asked(store, OTHERS)
        assert reader.told == ["snapshot", "cursor-too-old", "snapshot"]


def test_an_id_that_was_never_given_begins_with_the_answer(tmp_path: Path) -> None:
    with live(tmp_path, QUICK) as service:
        register(service, "others", OTHERS)
        reader = Follower()
        reader.last = 77
        reader.listen(service, "others", 0)
        assert reader.told == ["cursor-too-old", "snapshot"]


def test_another_text_under_the_name_begins_anew_and_the_same_goes_on(tmp_path: Path) -> None:
    store = Store()
    store.update(P + "INSERT DATA { :a :knows :b }")
    with live(tmp_path, QUICK, store) as service:
        register(service, "q", OTHERS)
        before = heard(service, "q")
        register(service, "q", OTHERS)
        assert service.journal.queries.get("q").next - 1 == before.last
        register(service, "q", FRIENDS)
        assert heard(service, "q", before).rows == asked(store, FRIENDS)
        assert before.told == ["snapshot", "cursor-too-old", "snapshot"]
        with pytest.raises(CursorError):
            service.journal.matches.read("q", 0)


def test_a_name_that_was_deleted_never_goes_on(tmp_path: Path) -> None:
    store = Store()
    with live(tmp_path, QUICK, store) as service:
        register(service, "q", OTHERS)
        reader = heard(service, "q")
        service.queries.delete("q")
        with pytest.raises(UnknownError):
            heard(service, "q")
        store.update(P + "INSERT DATA { :a :knows :b }")
        register(service, "q", OTHERS)
        assert heard(service, "q", reader).rows == asked(store, OTHERS)


def test_a_query_that_is_resumed_tells_what_is_different(tmp_path: Path) -> None:
    store = Store()
    with live(tmp_path, QUICK, store) as service:
        register(service, "q", OTHERS)
        reader = heard(service, "q")
        assert service.queries.pause("q").record.state == "paused"
        store.update(P + "INSERT DATA { :a :knows :b, :c }")
        assert heard(service, "q").rows == Counter()
        service.queries.resume("q")
        assert heard(service, "q", reader).rows == asked(store, OTHERS)
    with live(tmp_path, QUICK, store) as service:
        service.queries.pause("q")
    with live(tmp_path, QUICK, store) as service:
        assert heard(service, "q").rows == asked(store, OTHERS)
        assert service.queries.get("q").record.state == "paused"


def test_one_that_grows_too_large_fails_and_says_so(tmp_path: Path) -> None:
    store = Store()
    with live(tmp_path, LiveSettings(idle=None, heartbeat=0.05, answer=5), store) as service:
        register(service, "q", P + "SELECT ?x WHERE { ?x :a ?y . ?z :b ?w }")
        register(service, "other", OTHERS)
        reader = heard(service, "q")
        store.update(P + "INSERT DATA { :x :a 1, 2, 3 ; :b 1, 2, 3 ; :knows :y }")
        eventually(lambda: service.queries.get("q").record.state == "failed")
        assert "9 given, at most 5" in service.queries.get("q").error
        reader.listen(service, "q", 99)
        assert reader.told[-1] == "end"
        assert reader.reason.startswith("failed: ")
        assert heard(service, "other").rows == asked(store, OTHERS)
        with pytest.raises(LimitError):
            register(service, "q2", P + "SELECT ?x WHERE { ?x :a ?y . ?z :b ?w }")
        store.update(P + "DELETE DATA { :x :a 1, 2 }")
        service.queries.resume("q")
        assert heard(service, "q").rows == asked(store, P + "SELECT ?x WHERE { ?x :a ?y . ?z :b ?w }")


def test_nobody_waits_for_a_query_that_is_asked_for_long(tmp_path: Path) -> None:
    """Nor do readers of others; neither at its registration, nor when it is resumed."""
    store, begun, go_on = Store(), threading.Semaphore(0), threading.Semaphore(0)
    store.update(P + "INSERT DATA { :a :knows :c ; :slow " + ", ".join(map(str, range(20))) + " }")

    def ask(question: Question) -> Solutions:
        begun.release()
        assert go_on.acquire(timeout=60)
        return answer_of(store.inner, question)

    def in_thread(work: Callable[[], object]) -> threading.Thread:
        thread = threading.Thread(target=work)
        thread.start()
        assert begun.acquire(timeout=60)
        return thread

    def others_go_on(name: str) -> None:
        store.update(P + f"INSERT DATA {{ :a :knows :{name} }}")
        assert heard(service, "others").rows == asked(store, OTHERS)

    store.ask_by(lambda usual: ask)
    slow = P + "SELECT ?x WHERE { ?y :slow ?x }"
    with live(tmp_path, LiveSettings(idle=None, heartbeat=0.05, held=10), store) as service:
        register(service, "others", OTHERS)
        coming = in_thread(lambda: register(service, "slow", slow))
        others_go_on("d")
        go_on.release()
        coming.join()
        reader = heard(service, "slow")
        store.update(P + "INSERT DATA { :a :slow 20 }")
        assert begun.acquire(timeout=60)
        others_go_on("e")
        go_on.release()
        assert heard(service, "slow", reader).rows == asked(store, slow)
        service.queries.pause("slow")
        resumed = in_thread(lambda: service.queries.resume("slow"))
        others_go_on("f")
        go_on.release()
        resumed.join()
        store.update(P + "DELETE DATA { :a :slow 0 }")
        go_on.release()
        assert heard(service, "slow", reader).rows == asked(store, slow)
        assert reader.told == ["snapshot", "change", "change"]


@pytest.mark.parametrize("damage", ["UPDATE checkpoint SET state = x'0102'", "DELETE FROM checkpoint"])
def test_a_damaged_checkpoint_is_told(tmp_path: Path, damage: str) -> None:
    store = Store()
    store.update(P + "INSERT DATA { :a :knows :b }")
    with live(tmp_path, QUICK, store) as service:
        register(service, "q", OTHERS)
        reader = heard(service, "q")
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as journal:
        journal.execute(damage)
        journal.commit()
    store.update(P + "INSERT DATA { :a :knows :c }")
    with live(tmp_path, QUICK, store) as service:
        assert heard(service, "q", reader).rows == asked(store, OTHERS)
        assert "cursor-too-old" in reader.told


def test_graphs_and_truths_go_on_over_restarts(tmp_path: Path) -> None:
    """Blank nodes of a template are the same in every process."""
    store, graph, truth = Store(), Follower(), Follower()
    store.update(P + "INSERT DATA { :a :knows :b }")
    known = P + "CONSTRUCT { ?whom :knownBy [ :who ?who ] } WHERE { ?who :knows ?whom }"
    with live(tmp_path, QUICK, store) as service:
        register(service, "graph", known)
        register(service, "truth", P + "ASK { :b :knows ?whom }")
        before = heard(service, "graph", graph).rows.copy()
        assert heard(service, "truth", truth).truth is False
    with live(tmp_path, QUICK, store) as service:
        assert heard(service, "graph", graph).rows == before
        assert graph.told == ["snapshot"]
    store.update(P + "INSERT DATA { :b :knows :c }")
    with live(tmp_path, QUICK, store) as service:
        assert len(heard(service, "graph", graph).rows - before) == 2
        assert heard(service, "truth", truth).truth is True
        store.update(P + "DELETE WHERE { ?who :knows ?whom }")
        assert heard(service, "graph", graph).rows == Counter()
        assert heard(service, "truth", truth).truth is False


def test_what_could_not_be_stored_is_told_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store()
    with live(tmp_path, QUICK, store) as service:
        register(service, "q", OTHERS)
        reader = heard(service, "q")
        full = True
        emit = service.journal.emit

        def refused(*given: object) -> None:
            if full:
                raise FullError("no room")
            emit(*given)  # type: ignore[arg-type]

        monkeypatch.setattr(service.journal, "emit", refused)
        store.update(P + "INSERT DATA { :a :knows :b }")
        eventually(lambda: service.standing.full)
        assert "reason" in service.health()
        store.update(P + "DELETE DATA { :a :knows :b } ; INSERT DATA { :a :knows :c }")
        full = False
        eventually(lambda: not service.standing.full)
        assert heard(service, "q", reader).rows == asked(store, OTHERS)


def test_an_update_of_more_rows_than_are_held_is_one_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oxiseq.live.standing._KEPT", 50)
    store = Store()
    with live(tmp_path, QUICK, store) as service:
        register(service, "q", OTHERS)
        reader = heard(service, "q")
        some = "".join(f":a :knows {number} . " for number in range(2_100))
        store.update(P + f"INSERT DATA {{ {some} }}")
        assert heard(service, "q", reader).rows == asked(store, OTHERS)
        assert len({part.time[0] for part in service.journal.matches.read("q", 1)}) == 1


def test_who_asks_for_a_text_shares_one_query_until_nobody_reads(tmp_path: Path) -> None:
    with live(tmp_path, LiveSettings(idle=None, heartbeat=0.05, unread=0.0), Store()) as service:
        name = service.standing.unnamed(OTHERS)
        assert service.standing.unnamed(OTHERS) == name
        heard(service, name)
        service.standing.let_go_unread()
        assert service.queries.all() == []


def test_a_query_of_somebodys_own_stays_whatever_it_is_called(tmp_path: Path) -> None:
    with live(tmp_path, LiveSettings(idle=None, heartbeat=0.05, unread=0.0), Store()) as service:
        name = service.standing.unnamed(OTHERS)
        service.queries.register(name, OTHERS, "sparql", {"unnamed": True}, replace=True)
        heard(service, name)
        other = service.standing.unnamed(OTHERS)
        assert other != name
        heard(service, other)
        service.standing.let_go_unread()
        assert [status.record.name for status in service.queries.all()] == [name]


def test_what_cannot_stand_is_refused(tmp_path: Path) -> None:
    with live(tmp_path, LiveSettings(idle=None, queries=2), Store()) as service:
        for text in ("SELECT ?x { ?x ?p NOW() }", P + "SELECT ?x { SERVICE <http://e/> { ?x :p 1 } }", "ASK {", ""):
            with pytest.raises(QueryError):
                register(service, "q", text)
        assert service.queries.all() == []
        register(service, "a", OTHERS)
        register(service, "b", OTHERS)
        with pytest.raises(BoundError):
            register(service, "c", OTHERS)
        with pytest.raises(ConflictError):
            register(service, "a", FRIENDS, replace=False)
        assert service.queries.get("a").record.text == OTHERS


def test_a_name_goes_from_streams_to_the_store_and_back(tmp_path: Path) -> None:
    rises = P + "SELECT ?x WITHIN 1 HOUR FROM STREAM S <http://e/s> WHERE { SEQ(A) DEFINE GPM A ON S { ?x :p ?y } }"
    with live(tmp_path, QUICK, Store()) as service:
        service.queries.register("q", rises)
        register(service, "q", OTHERS)
        reader = heard(service, "q")
        assert service.queries.get("q").record.language == "sparql"
        service.queries.register("q", rises, replace=True)
        assert service.queries.get("q").reads == ("http://e/s",)
        with pytest.raises(UnknownError):
            service.standing.answer("q")
        register(service, "q", OTHERS)
        heard(service, "q", reader)
        assert reader.told[-2:] == ["cursor-too-old", "snapshot"]
