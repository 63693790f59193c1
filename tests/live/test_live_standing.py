"""Queries that stand over a served store: their changes are stored, and go on after the server does."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from live_services import eventually, live, rows

from oxiseq.engine.errors import OxiseqError
from oxiseq.journal import ConflictError, CursorError, UnknownError
from oxiseq.live import LiveService, LiveSettings
from oxiseq.store import Store

P = "PREFIX : <http://e/> "
KNOWS = P + "SELECT ?who ?whom WHERE { ?who :knows ?whom }"
KINDS = [
    P + "SELECT ?who (COUNT(*) AS ?n) WHERE { ?who :knows ?whom } GROUP BY ?who",
    P + "CONSTRUCT { ?whom :knownBy [ :who ?who ] } WHERE { ?who :knows ?whom }",
    P + "ASK { ?who :knows :c }",
]


def know(store: Store, text: str) -> None:
    store.update(f"{P} {text}")


def texts(found: list[tuple[int, tuple[str | None, ...]]]) -> list[tuple[int, str, int]]:
    """Id, the names of the terms, how many."""
    return [(i, " ".join(str(t)[10:-1] for t in terms), many(weight)) for i, (*terms, weight) in found]


def many(weight: str | None) -> int:
    """How many of a row come or go."""
    return int(str(weight).split('"')[1])


def mirrored(service: LiveService, name: str) -> Counter[tuple[str | None, ...]]:
    """What a reader has who has read all changes from the first on, nothing having been there at first."""
    found: Counter[tuple[str | None, ...]] = Counter()
    for _, (*row, weight) in rows(service, name):
        found[tuple(row)] += many(weight)
    return +found


def test_changes_are_rows_of_the_journal(tmp_path: Path) -> None:
    store = Store()
    with live(tmp_path, store=store) as service:
        query = service.standing.register("friends", KNOWS)
        know(store, "INSERT DATA { :a :knows :b . :a :knows :c }")
        know(store, "DELETE { :a :knows :b } INSERT { :b :knows :c } WHERE {}")
        query.catch_up()
        service.standing.flush()
        found = texts(rows(service, "friends"))
        assert [i for i, _, _ in found] == [1, 2, 3, 4]
        assert sorted(each[1:] for each in found[:2]) == [("a b", 1), ("a c", 1)]
        assert [each[1:] for each in found[2:]] == [("a b", -1), ("b c", 1)]
        assert [change.number for change in query.take(since=0)] == [2, 4]


def test_subscribers_are_sent_changes(tmp_path: Path) -> None:
    store = Store()
    with live(tmp_path, store=store) as service:
        service.standing.register("friends", KNOWS)
        reader = service.subscriptions.subscribe("friends", None)
        know(store, "INSERT DATA { :a :knows :b }")
        told = [b""]

        def arrived() -> bool:
            told.append(reader.take(1))
            return b"http://e/b" in b"".join(told)

        eventually(arrived)
        assert b"id: 1" in b"".join(told)
        reader.close()


@pytest.mark.parametrize("text", KINDS)
def test_what_changed_while_nobody_was_there_is_told(tmp_path: Path, text: str) -> None:
    store = Store()
    with live(tmp_path, store=store) as service:
        service.standing.register("it", text)
        know(store, "INSERT DATA { :a :knows :b . :b :knows :c }")
    know(store, "DELETE DATA { :b :knows :c }; INSERT DATA { :a :knows :d }")
    with live(tmp_path, store=store) as service:
        query = service.standing.get("it")
        know(store, "INSERT DATA { :d :knows :a }")
        snapshot = query.snapshot()
        service.standing.flush()
        now = mirrored(service, "it")
        assert sum(now.values()) == len(snapshot)
        assert query.number == service.journal.matches.last("it")
        assert query.state == "followed"
    with live(tmp_path, store=store) as service:
        assert mirrored(service, "it") == now  # nothing has changed: nothing more is told
        assert service.standing.get("it").number == snapshot.number


def test_a_kill_loses_no_change_and_doubles_none(tmp_path: Path) -> None:
    store = Store()
    killed = LiveService(store, tmp_path, LiveSettings(idle=None), "normal")
    killed.start()
    query = killed.standing.register("friends", KNOWS)
    know(store, "INSERT DATA { :a :knows :b }")
    query.catch_up()
    killed.standing.flush()
    query.close()  # as if the process were gone: no checkpoint is made
    know(store, "INSERT DATA { :b :knows :c }")
    killed.close()
    with live(tmp_path, store=store) as service:
        service.standing.flush()
        assert [each[1:] for each in texts(rows(service, "friends"))] == [("a b", 1), ("b c", 1)]


def test_readers_of_a_lost_answer_are_told_to_begin_anew(tmp_path: Path) -> None:
    store = Store()
    with live(tmp_path, store=store) as service:
        service.standing.register("friends", KNOWS)
        know(store, "INSERT DATA { :a :knows :b }")
    with live(tmp_path, store=store) as service:
        service.journal.checkpoints.drop("friends")
        service.standing._saved["friends"] = service.standing.get("friends").number
    with live(tmp_path, store=store) as service:
        query = service.standing.get("friends")
        assert len(query.snapshot()) == 1
        with pytest.raises(CursorError):
            service.journal.matches.read("friends", 0)
        know(store, "INSERT DATA { :b :knows :c }")
        query.catch_up()
        service.standing.flush()
        assert [i for i, _, _ in texts(rows(service, "friends", query.number - 1))] == [query.number]


def test_names(tmp_path: Path) -> None:
    with live(tmp_path, store=Store()) as service:
        service.standing.register("one", KNOWS)
        with pytest.raises(ConflictError):
            service.standing.register("one", KNOWS)
        with pytest.raises(OxiseqError, match="no name"):
            service.standing.register("a b", KNOWS)
        service.standing.register("one", KINDS[2], replace=True)
        assert service.standing.get("one").form == "ASK"
        assert [record.language for record in service.journal.queries.all()] == ["sparql"]
        service.standing.delete("one")
        with pytest.raises(UnknownError):
            service.standing.get("one")
        assert service.standing.register(None, KNOWS).name == "standing-1"


def test_checkpoints_follow_changes(tmp_path: Path) -> None:
    store = Store()
    settings = LiveSettings(idle=None, matches=10)
    with live(tmp_path, settings, store) as service:
        query = service.standing.register("friends", KNOWS)
        for i in range(20):
            know(store, f"INSERT DATA {{ :a :knows :p{i} }}")
            query.catch_up()
            service.standing.flush()
        eventually(lambda: _saved(service) > 10)
        assert len(query.snapshot()) == 20


def _saved(service: LiveService) -> int:
    checkpoint = service.journal.checkpoints.latest("friends")
    return 0 if checkpoint is None else checkpoint.matches["friends"]
