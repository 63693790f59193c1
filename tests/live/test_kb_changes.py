"""Changes of the KB stand between two entries of the log: a service that dies finds what one that lives on finds."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest
from live_events import (
    ASKED,
    EVENTS,
    EX,
    INTERVALS,
    LIMITED,
    LIMITS,
    MUTED,
    POWER,
    RISES,
    WINDOWS,
    Batch,
    batches,
    limits_update,
    power,
)
from live_services import Rows, live, push, rest, rows
from profiles import in_the_gate
from pyoxigraph import QueryResultsFormat, QuerySolutions
from pyoxigraph import Store as RdfStore

from oxiseq.api.store import ChangeRefusedError, Store
from oxiseq.engine.events.time import LAST_TIME
from oxiseq.engine.kb import Solution
from oxiseq.journal import FILE_NAME
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.remote import RemoteKnowledge
from oxiseq.live.worker import Worker
from oxiseq.sparql.upstream import read_answer

SECONDS = {"lateness": "3s"}
QUERIES = {
    "limited": ("spaseq", LIMITED, {}),
    "muted": ("spaseq", MUTED, {}),
    "limited, late": ("spaseq", LIMITED, SECONDS),
    "windows": ("rspql", WINDOWS, {}),
    "windows, late": ("rspql", WINDOWS, SECONDS),
    "asked": ("rspql", ASKED, SECONDS),
    "events": ("rsepql", EVENTS, SECONDS),
    "intervals": ("epsparql", INTERVALS, {}),
    "intervals, late": ("epsparql", INTERVALS, SECONDS),
}
OFTEN = LiveSettings(idle=None, checkpoint=0.05)
SOME = next(batch for batch in batches(9, seed=2) if batch.stream == POWER)
RARELY = LiveSettings(idle=None, checkpoint=1000)


def steps(count: int, seed: int) -> list[Batch | str]:
    """Batches, and updates of the KB between them."""
    drawn = random.Random(seed)
    made: list[Batch | str] = []
    for number, batch in enumerate(b for b in batches(2 * count, seed, most=4) if b.stream == POWER):
        made.append(batch)
        while drawn.random() < 0.3:
            made.append(limits_update(number + len(made)))
    return made


def take(service: LiveService, step: Batch | str) -> None:
    """Push, or change the KB."""
    if isinstance(step, Batch):
        push(service, step)
    else:
        service.store.update(step)


def after_a_kill(service: LiveService, folder: Path, settings: LiveSettings) -> LiveService:
    """The service over what a kill at this moment would have left: copies of the journal and of the KB."""
    folder.mkdir()
    service.journal.backup(folder / FILE_NAME)
    store = Store()
    store.extend(service.store)
    service.close()
    again = LiveService(store, folder, settings, "normal")
    again.start()
    return again


def register(service: LiveService) -> None:
    for name, (language, text, options) in QUERIES.items():
        service.queries.register(name.replace(", ", "-"), text, language, options)


def begun(folder: Path, settings: LiveSettings = RARELY) -> LiveService:
    store = Store()
    store.update(limits_update(0))
    service = LiveService(store, folder, settings, "normal")
    service.start()
    register(service)
    return service


def saved_in_an_open_instant(folder: Path) -> LiveService:
    """The limit is 700, and an event of that instant has come."""
    folder.mkdir()
    service = begun(folder)
    service.store.update(f"CLEAR ALL ; INSERT DATA {{ GRAPH <{LIMITS}> {{ <{EX}h1> <{EX}limit> 700 }} }}")
    push(service, Batch(POWER, "1", power(1, 1_000_000, 1, 900).encode()))
    rest(service)
    with service.worker.lock:
        for query in service._engine.queries:
            service.worker.checkpointer.save(query)
    return service


def found(service: LiveService) -> dict[str, Rows]:
    service.streams.advance(POWER, LAST_TIME)
    rest(service)
    assert service.worker.error is None
    return {name: rows(service, name.replace(", ", "-")) for name in QUERIES}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    service = begun(tmp_path_factory.mktemp("expected"))
    with closing(service):
        for step in steps(60, seed=1):
            take(service, step)
        return found(service)


@pytest.mark.parametrize("seed", in_the_gate({0, 1}, range(4)))
def test_deaths_between_changes_change_nothing(tmp_path: Path, expected: dict[str, Rows], seed: int) -> None:
    drawn = random.Random(seed)
    settings = drawn.choice([OFTEN, RARELY])
    (tmp_path / "0").mkdir()
    service = begun(tmp_path / "0", settings)
    deaths = 0
    for step in steps(60, seed=1):
        take(service, step)
        if drawn.random() < 0.1:
            deaths += 1
            service = after_a_kill(service, tmp_path / str(deaths), settings)
    assert deaths > 2
    with closing(service):
        assert found(service) == expected
    assert all(len(each) > 10 for each in expected.values())


@pytest.mark.slow
def test_a_death_between_the_checkpoint_and_the_change(tmp_path: Path, expected: dict[str, Rows]) -> None:
    """Both outcomes of the store's commit: what has not happened is sent again by its client."""
    (tmp_path / "0").mkdir()
    service = begun(tmp_path / "0")
    number = 0
    for step in steps(60, seed=1):
        if isinstance(step, str):
            number += 1
            with pytest.raises(SyntaxError):
                service.store.update(f"{step} nonsense")  # a checkpoint has been made, and no change
            if number % 2:
                service.store.update(step)  # the change has been made, and nobody has been told
            service = after_a_kill(service, tmp_path / str(number), RARELY)
        take(service, step)
    with closing(service):
        assert found(service) == expected


def test_a_checkpoint_is_made_only_where_something_has_come(tmp_path: Path) -> None:
    service = begun(tmp_path)
    with closing(service):
        push(service, SOME)
        rest(service)
        service.store.update(limits_update(1))
        before = service.journal.commits
        for number in range(5):
            service.store.update(limits_update(number))
        assert service.journal.commits == before


def test_an_open_instant_keeps_its_answers_though_a_checkpoint_stands_there(tmp_path: Path) -> None:
    service = saved_in_an_open_instant(tmp_path / "0")
    service.store.update("CLEAR ALL")
    service = after_a_kill(service, tmp_path / "1", RARELY)
    with closing(service):
        ((_, terms),) = found(service)["muted"]
        assert str(terms[2]).startswith('"700"')


def test_a_change_before_the_first_turn_finds_the_queries_brought_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = saved_in_an_open_instant(tmp_path / "0")
    go_on, turn = threading.Event(), Worker.turn
    monkeypatch.setattr(Worker, "turn", lambda worker: go_on.is_set() and turn(worker))
    go_on.set()
    rest(service)
    go_on.clear()
    service = after_a_kill(service, tmp_path / "1", RARELY)
    with closing(service):
        service.store.update("CLEAR ALL")
        go_on.set()
        assert {name: len(each) for name, each in found(service).items() if name != "limited"} == {
            name: 0 if name.startswith("limited") else 1 for name in QUERIES if name != "limited"
        }


def test_queries_that_do_not_ask_cost_a_change_nothing(tmp_path: Path) -> None:
    with live(tmp_path) as service:
        service.queries.register("rises", RISES)
        with service.worker.lock:  # the worker stands still
            push(service, SOME)
            before = service.journal.commits
            service.store.update(limits_update(1))
            assert service.journal.commits == before


def test_a_change_waits_for_the_events_before_it_but_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = begun(tmp_path)
    monkeypatch.setattr(service._changes, "_patience", 0.1)
    turn = service.worker.turn
    go_on = threading.Event()
    monkeypatch.setattr(service.worker, "turn", lambda: go_on.is_set() and turn())
    with closing(service):
        push(service, SOME)
        store = service.store
        size = len(store)
        with pytest.raises(ChangeRefusedError):
            store.update("CLEAR ALL")
        assert len(store) == size
        go_on.set()
        monkeypatch.setattr(service._changes, "_patience", 30.0)
        store.update("CLEAR ALL")
        assert not len(store)


def test_changes_are_free_when_the_service_has_ended(tmp_path: Path) -> None:
    service = begun(tmp_path)
    service.close()
    service.store.clear()
    assert not len(service.store)


# --- a knowledge base elsewhere ---------------------------------------------------------------------


class Elsewhere:
    """An endpoint, as `oxiseq.sparql.upstream.RemoteKb` is one."""

    version = 1

    def __init__(self) -> None:
        self.store = RdfStore()

    def solutions(self, text: str) -> Iterable[Solution]:
        return read_answer(text, self.body(text))

    def body(self, text: str) -> bytes:
        answer = self.store.query(text)
        assert isinstance(answer, QuerySolutions)
        return answer.serialize(format=QueryResultsFormat.JSON) or b""


@pytest.mark.parametrize("seed", in_the_gate({0}, range(2)))
def test_deaths_between_refreshes_change_nothing(tmp_path: Path, expected: dict[str, Rows], seed: int) -> None:
    """Whatever the endpoint says meanwhile: it counts from when it is asked."""
    dice = random.Random(seed)
    endpoint = Elsewhere()
    endpoint.store.update(limits_update(0))
    (tmp_path / "0").mkdir()
    service = LiveService(RemoteKnowledge(endpoint), tmp_path / "0", RARELY, "normal")
    service.start()
    register(service)
    deaths = 0
    for step in steps(60, seed=1):
        if isinstance(step, Batch):
            push(service, step)
        else:
            endpoint.store.update(step)
            service.refresh()
        if dice.random() < 0.1:
            deaths += 1
            folder = tmp_path / str(deaths)
            folder.mkdir()
            service.journal.backup(folder / FILE_NAME)
            service.close()
            endpoint.store.clear()
            service = LiveService(RemoteKnowledge(endpoint), folder, RARELY, "normal")
            service.start()
    assert deaths > 2
    with closing(service):
        assert found(service) == expected
