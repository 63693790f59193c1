"""An entry that takes long is passed on by several turns: what is found is the same, and nothing is changed or saved in
its midst, whatever comes between two portions."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from live_events import BEGIN, POWER, RISES, Batch, limits_update, power
from live_services import Rows, eventually, live, push, rest, rows
from profiles import in_the_gate
from test_kb_changes import OFTEN, QUERIES, RARELY, after_a_kill, begun, found, steps, take

from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.live import LiveService
from oxiseq.live.timed_lock import TimedLock
from oxiseq.live.worker import Worker

SECOND = 1_000_000
HOUSES = Batch(POWER, "many", "".join(power(i, BEGIN + i * SECOND, 1, 1 << i) for i in range(9)).encode())
"""Each event is more than twice the one before: with it a match of RISES."""


@contextmanager
def event_by_event() -> Iterator[None]:
    """No turn has time for more than one event, and behind each the terms are forgotten that nothing holds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("oxiseq.live.worker._STRETCH", -1.0)
        patch.setattr("oxiseq.live.worker._SMALLEST_PORTION", 1)
        patch.setattr("oxiseq.live.worker.GROUP", 8)
        patch.setattr("oxiseq.live.worker._COLLECT", -1.0)
        patch.setattr(TermDictionary, "collect_if_due", TermDictionary.collect)
        yield


class Steps:
    """The worker of a service stops behind each turn that ends within an entry, until it is let go on."""

    def __init__(self, service: LiveService) -> None:
        self.worker, self._turn = service.worker, service.worker.turn
        self._reached, self._go_on, self.free = threading.Event(), threading.Event(), False

    def turn(self) -> bool:
        worked = self._turn()
        if not (self.worker.between_entries or self.free):
            self._reached.set()
            assert self._go_on.wait(60)
            self._go_on.clear()
        return worked

    def reach(self) -> None:
        """Wait until it stands within an entry."""
        assert self._reached.wait(60)
        self._reached.clear()
        assert not self.worker.between_entries

    def go_on(self, *, freely: bool = False) -> None:
        self.free = freely
        self._go_on.set()


@pytest.fixture
def within(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[LiveService, Steps]]:
    """A service with RISES that stands within an entry, of which it has passed on a part."""
    with event_by_event(), live(tmp_path) as service:
        service.queries.register("rises", RISES)
        held = Steps(service)
        monkeypatch.setattr(service.worker, "turn", held.turn)
        push(service, HOUSES)
        for _ in range(6):
            held.reach()
            held.go_on()
        held.reach()
        yield service, held
        held.go_on(freely=True)


def of_one_piece(folder: Path) -> Rows:
    with live(folder) as service:
        service.queries.register("rises", RISES)
        push(service, HOUSES)
        rest(service)
        return rows(service, "rises")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    service = begun(tmp_path_factory.mktemp("expected"))
    with closing(service):
        for step in steps(40, seed=5):
            take(service, step)
        return found(service)


@pytest.mark.parametrize("seed", in_the_gate({0}, range(6)))
def test_all_languages_find_the_same_event_by_event_with_changes_and_deaths_between(
    tmp_path: Path, expected: dict[str, Rows], seed: int
) -> None:
    drawn, deaths = random.Random(seed), 0
    settings = drawn.choice([OFTEN, RARELY])
    (tmp_path / "0").mkdir()
    with event_by_event():
        service = begun(tmp_path / "0", settings)
        for step in steps(40, seed=5):
            take(service, step)
            if drawn.random() < 0.15:
                deaths += 1
                service = after_a_kill(service, tmp_path / str(deaths), settings)
            if drawn.random() < 0.2:
                name = drawn.choice([*QUERIES]).replace(", ", "-")
                service.queries.pause(name)
                service.queries.resume(name)
        with closing(service):
            assert found(service) == expected
    assert deaths and all(expected.values())


def test_what_was_found_is_told_before_the_entry_ends(tmp_path: Path, within: tuple[LiveService, Steps]) -> None:
    service, held = within
    with service.worker.lock:
        service.worker.flush()
    early = rows(service, "rises")
    assert early and service.worker.position == 0
    held.go_on(freely=True)
    rest(service)
    (tmp_path / "other").mkdir()
    whole = of_one_piece(tmp_path / "other")
    assert rows(service, "rises") == whole and whole[: len(early)] == early and len(early) < len(whole)


def test_a_death_within_an_entry_loses_nothing_and_doubles_nothing(
    tmp_path: Path, within: tuple[LiveService, Steps]
) -> None:
    service, held = within
    with service.worker.lock:
        service.worker.flush()
    again = tmp_path / "again"
    again.mkdir()
    service.journal.backup(again / "journal.oxiseq")
    held.go_on(freely=True)
    with live(again) as other:
        rest(other)
        (tmp_path / "other").mkdir()
        assert rows(other, "rises") == of_one_piece(tmp_path / "other")


def test_a_query_that_comes_within_an_entry_sees_none_of_it(within: tuple[LiveService, Steps]) -> None:
    service, held = within
    service.queries.register("late", RISES)
    assert service.queries.get("late").record.state == "running"
    assert service.worker.find("late") is None
    held.go_on(freely=True)
    rest(service)
    assert not rows(service, "late")
    push(service, Batch(POWER, "more", power(20, BEGIN + 9 * SECOND, 1, 1).encode()))
    push(service, Batch(POWER, "most", power(21, BEGIN + 10 * SECOND, 1, 10).encode()))
    push(service, Batch(POWER, "last", power(22, BEGIN + 11 * SECOND, 1, 1).encode()))
    rest(service)
    assert len(rows(service, "late")) == 1


def test_a_query_that_rests_within_an_entry_has_seen_all_of_it(
    tmp_path: Path, within: tuple[LiveService, Steps]
) -> None:
    service, held = within
    service.queries.pause("rises")
    held.go_on(freely=True)
    rest(service)
    service.queries.resume("rises")
    rest(service)
    (tmp_path / "other").mkdir()
    assert rows(service, "rises") == of_one_piece(tmp_path / "other")


def test_a_query_that_is_deleted_within_an_entry_is_gone_at_once(within: tuple[LiveService, Steps]) -> None:
    service, held = within
    service.queries.delete("rises")
    assert service.queries.all() == []
    held.go_on(freely=True)
    eventually(lambda: service.worker.find("rises") is None)
    rest(service)
    assert service.worker.error is None


def test_the_knowledge_base_does_not_change_within_an_entry(within: tuple[LiveService, Steps]) -> None:
    service, held = within
    changed = threading.Event()

    def change() -> None:
        service.store.update(limits_update(1))
        changed.set()

    thread = threading.Thread(target=change)
    thread.start()
    assert not changed.wait(0.2)
    assert not service.worker.between_entries
    held.go_on(freely=True)
    assert changed.wait(30)
    thread.join()


def test_the_knowledge_base_changes_behind_what_was_left_to_the_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query that was registered before sees what came before with the knowledge base of then."""
    with live(tmp_path) as service:
        go_on, made = threading.Event(), list[str]()
        turn = service.worker.turn

        def waits() -> bool:
            assert go_on.wait(60)
            return turn()

        monkeypatch.setattr(service.worker, "turn", waits)
        service.worker.change(lambda: made.append("change"), at_once=False)
        service.store.update(limits_update(1))
        assert made == ["change"]
        go_on.set()


def test_no_checkpoint_is_made_within_an_entry(
    within: tuple[LiveService, Steps], monkeypatch: pytest.MonkeyPatch
) -> None:
    service, held = within
    monkeypatch.setattr(service.worker.checkpointer, "_every", 0.0)
    made: list[bool] = []
    save = service.worker.checkpointer.save_some

    def saves(**given: bool) -> bool:
        made.append(service.worker.between_entries)
        return save(**given)

    monkeypatch.setattr(service.worker.checkpointer, "save_some", saves)
    held.go_on()
    held.reach()
    assert not made
    held.go_on(freely=True)
    eventually(lambda: bool(made))
    assert all(made)


def test_a_service_that_ends_within_an_entry_ends_behind_it(within: tuple[LiveService, Steps]) -> None:
    service, held = within
    ends = threading.Thread(target=service.worker.stop)
    ends.start()
    eventually(lambda: service.worker._thread.ending)
    assert not service.worker.between_entries
    held.go_on(freely=True)
    ends.join(60)
    latest = service.journal.checkpoints.latest("rises")
    assert service.worker.position == 1 and latest is not None and latest.position == 1


def test_an_error_within_an_entry_is_one_of_the_entry(
    tmp_path: Path, within: tuple[LiveService, Steps], monkeypatch: pytest.MonkeyPatch
) -> None:
    service, held = within

    def fails(*_: object) -> None:
        raise KeyError("not foreseen")

    monkeypatch.setattr(service._engine, "push", fails)
    held.go_on(freely=True)
    eventually(lambda: service.worker.stops == 1)
    monkeypatch.undo()
    eventually(lambda: service.worker.whole)
    rest(service)
    (tmp_path / "other").mkdir()
    assert rows(service, "rises") == of_one_piece(tmp_path / "other")


# --- the lock --------------------------------------------------------------------------------------------


def waits(lock: TimedLock, done: Callable[[], None]) -> threading.Thread:
    """A thread that waits for the lock, and has it for a moment then."""

    def take() -> None:
        with lock:
            done()

    thread = threading.Thread(target=take)
    thread.start()
    eventually(lock._next.locked)
    return thread


def test_who_waits_comes_before_who_lets_go_and_takes_it_again() -> None:
    held: list[float] = []
    lock, order = TimedLock(held.append), list[str]()
    with lock:
        thread = waits(lock, lambda: order.append("waits"))
        with lock:  # again: that is no turn of another one
            order.append("holds")
    with lock:
        order.append("again")
    thread.join()
    assert order == ["holds", "waits", "again"] and len(held) == 3


def test_who_waits_for_so_long_only_leaves_the_lock_to_others() -> None:
    lock, taken = TimedLock(lambda seconds: None), list[bool]()
    with lock:
        thread = threading.Thread(target=lambda: taken.append(lock.acquire(timeout=0.05)))
        thread.start()
        thread.join(10)
        assert taken == [False]
    assert lock.acquire(timeout=1)
    lock.release()


def test_a_portion_fits_what_events_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It becomes smaller where they take long, down to a bound, and larger again."""
    with live(tmp_path) as service:
        worker: Worker = service.worker
        assert worker._portion == 1024
        monkeypatch.setattr("oxiseq.live.worker._STRETCH", -1.0)
        service.queries.register("rises", RISES)
        some = "".join(power(i, BEGIN + i * SECOND, 1, 1) for i in range(40))
        push(service, Batch(POWER, "some", some.encode()))
        rest(service)
        assert worker._portion == 16
        monkeypatch.setattr("oxiseq.live.worker._STRETCH", 1e9)
        many = "".join(power(i, BEGIN + (7200 + i) * SECOND, 1, 1) for i in range(200))
        push(service, Batch(POWER, "many more", many.encode()))
        rest(service)
        assert worker._portion > 64
