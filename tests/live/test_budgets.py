"""Budgets of running state: a query beyond its own forgets or fails, and restarts find what would have been found."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live_events import BEGIN, EX, POWER, RISES, Batch, batches, power
from live_services import eventually, live, push, rest, rows
from profiles import drawn

from oxiseq.api.store import Store
from oxiseq.engine.events.time import LAST_TIME
from oxiseq.engine.run.resets import Resets
from oxiseq.engine.run.run import Run
from oxiseq.journal import FILE_NAME, FullError, Journal, unpack_matches
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.engine import Engine
from oxiseq.live.live_query import Budget, BudgetError, LiveQuery

FOR_EVER = RISES.replace(" WITHIN 30 SECONDS", "")
PAIRS = f"VOCAB <{EX}> SELECT x, y FROM ceql WHERE A AS x ; B AS y"
RESET = {"max_state_records": 200, "on_state_limit": "drop"}
TIGHT = {"max_state_records": 40, "on_state_limit": "drop"}
"""Now and then a window of RISES holds more."""
SENT = [batch for batch in batches(160, seed=5) if batch.stream == POWER]


@pytest.mark.parametrize("budget", [{"max_state_records": 200}, {"max_state_bytes": 250_000}])
def test_a_query_that_resets_forgets_and_goes_on(tmp_path: Path, budget: dict[str, int]) -> None:
    with live(tmp_path) as service:
        service.queries.register("rises", FOR_EVER, options={**budget, "on_state_limit": "drop"})
        service.queries.register("free", FOR_EVER)
        for number, batch in enumerate(batches(900, seed=5) if "max_state_bytes" in budget else SENT):
            if batch.stream == POWER:
                push(service, batch)
            if number % 20 == 0:
                rest(service)  # or a slow machine works through all of them in one turn
        rest(service)
        status = service.queries.get("rises")
        assert status.record.state == "running"
        assert status.resets.count >= 1
        assert BEGIN < status.resets.time < BEGIN + 10**12
        assert status.resets.at > 1_600_000_000_000_000
        assert (
            f'oxiseq_query_state_drops_total{{query="rises"}} {status.resets.count}.0'
            in service.metrics.text().decode()
        )
        assert service.queries.get("free").resets == Resets()
        assert 10 < len(rows(service, "rises")) < len(rows(service, "free"))
        if "max_state_records" in budget:
            assert status.resets.records > 200
            assert service.worker.find("rises").run.records <= 400  # type: ignore[union-attr]


def test_equal_queries_of_equal_budgets_forget_at_the_same_events(tmp_path: Path) -> None:
    with live(tmp_path) as service:
        for number in range(3):
            service.queries.register(f"rises-{number}", FOR_EVER, options=RESET)
            options = {"stream_names": {"ceql": POWER}, **RESET}
            service.queries.register(f"pairs-{number}", PAIRS, "ceql", options=options)
        for number, batch in enumerate(SENT):
            push(service, batch)
            if number % 20 == 0:
                rest(service)
        rest(service)
        for kind in ("rises", "pairs"):
            first, *others = (service.worker.find(f"{kind}-{number}") for number in range(3))
            assert first is not None
            assert all(other is not None and other.run.records == first.run.records for other in others)
            assert {len(rows(service, f"{kind}-{number}")) for number in range(3)} == {len(rows(service, f"{kind}-0"))}
            resets = [service.queries.get(f"{kind}-{number}").resets for number in range(3)]
            assert len({(reset.count, reset.time, reset.records) for reset in resets}) == 1
        first, second = (service.worker.find(f"rises-{number}") for number in range(2))
        assert first is not None and second is not None
        assert first.run.resets.count >= 1
        assert first.run.finder is second.run.finder  # type: ignore[union-attr]


class Shared:
    """A state of two queries, of which some is dead."""

    records, alive = 210, 196

    def collect(self) -> None:
        self.records = self.alive


def test_queries_that_share_a_state_are_examined_at_the_same_time() -> None:
    """The first frees what is dead for both."""
    run, watches = Shared(), [Budget(records=200).watch() for _ in range(2)]
    had = run.records
    assert [watch.passed(cast(Run, run), had) for watch in watches] == ["", ""]
    run.records = run.alive = 204  # beyond the budget, but it has been examined
    assert [watch.passed(cast(Run, run), 204) for watch in watches] == ["", ""]
    run.records = run.alive = 209
    assert all("209 records, and 200" in watch.passed(cast(Run, run), 209) for watch in watches)


def test_a_query_that_fails_says_why_and_can_go_on_without_its_state(tmp_path: Path) -> None:
    options = {"max_state_records": 200, "on_state_limit": "fail"}
    with live(tmp_path) as service:
        service.queries.register("rises", FOR_EVER, options=options)
        for batch in SENT:
            push(service, batch)
            rest(service)
            if service.queries.get("rises").record.state == "failed":
                break
        failed = service.queries.get("rises")
        assert failed.record.state == "failed"
        assert "records, and 200 are allowed" in failed.error
        assert 'oxiseq_query_failures_total{query="rises"} 1.0' in service.metrics.text().decode()
        before = rows(service, "rises")
    with live(tmp_path) as service:
        again = service.queries.get("rises")
        assert (again.record.state, again.error) == ("failed", failed.error)
        assert rows(service, "rises") == before
        assert service.queries.resume("rises").error == ""
        push(service, Batch(POWER, "last", power(10**6, BEGIN + 10**12, 1, 1).encode()))
        push(service, Batch(POWER, "and", power(10**6 + 1, BEGIN + 10**12 + 10**6, 1, 9).encode()))
        service.streams.advance(POWER, LAST_TIME)
        rest(service)
        assert len(rows(service, "rises")) > len(before)
        assert service.queries.get("rises").resets.count >= 1


def test_the_servers_budget_is_for_queries_without_one(tmp_path: Path) -> None:
    with live(tmp_path, LiveSettings(idle=None, budget=Budget(records=200, policy="drop"))) as service:
        service.queries.register("default", FOR_EVER)
        service.queries.register("own", FOR_EVER, options={"max_state_records": 10**6})
        service.queries.register(
            "none", FOR_EVER, options={"max_state_records": 0, "max_state_bytes": 0, "on_state_limit": "fail"}
        )
        for batch in SENT:
            push(service, batch)
        rest(service)
        counts = {name: service.queries.get(name).resets.count for name in ("default", "own", "none")}
        assert counts["default"] > 0
        assert counts["own"] == counts["none"] == 0
        assert service.queries.get("none").budget == Budget(policy="fail")


def test_a_budget_that_nothing_fits_into_is_refused(tmp_path: Path) -> None:
    with live(tmp_path) as service:
        with pytest.raises(BudgetError, match="without any event"):
            service.queries.register("rises", RISES, options={"max_state_bytes": 1000})
        assert service.queries.all() == []


def test_ceql_queries_have_budgets_too(tmp_path: Path) -> None:
    types = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"

    def tuples(number: int) -> bytes:
        lines = [power(i, 1_000_000 * i, i, 1) for i in range(number, number + 20)]
        return "".join(
            f"{line}<{EX}h{number + i}> <{types}> <{EX}A> <{EX}p{number + i}> .\n" for i, line in enumerate(lines)
        ).encode()

    with live(tmp_path) as service:
        service.queries.register("pairs", PAIRS, "ceql", {"max_state_records": 100, "on_state_limit": "drop"})
        for number in range(1, 400, 20):
            push(service, Batch(f"{EX}ceql", str(number), tuples(number)))
        rest(service)
        status = service.queries.get("pairs")
        assert status.record.state == "running"
        assert status.resets.count >= 1


# --- restarts ---------------------------------------------------------------------------------------


def started(folder: Path, decisions: list[int]) -> LiveService:
    """A service, and after which entries its query has forgotten."""
    service = LiveService(Store(), folder, LiveSettings(idle=None), "normal")
    decide = service.worker.checkpointer.decide

    def noted(queries: list[LiveQuery], position: int, offsets: dict[str, int]) -> None:
        before = [query.run.resets.count for query in queries]
        decide(queries, position, offsets)
        after = [query.run.resets.count for query in queries]
        decisions.extend([position] * (sum(after) - sum(before)))

    setattr(service.worker.checkpointer, "decide", noted)  # noqa: B010  a method
    service.start()
    return service


def all_of(service: LiveService) -> list[tuple[str | None, ...]]:
    """All matches told by now, in order of their ids, which have no gaps."""
    with service.worker.lock:
        service.worker.flush()
        found = rows(service, "rises")
    assert [number for number, _ in found] == list(range(1, len(found) + 1))
    return [row for _, row in found]


@drawn(8)
@given(st.integers(0, 2**32))
@pytest.mark.slow
def test_restarts_find_what_a_run_with_the_same_decisions_finds(seed: int) -> None:
    """However entries stand together in turns: what has been told before a kill is found again, under the same ids."""
    dice = random.Random(seed)
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr("oxiseq.live.worker.PAGE", dice.choice([1, 1 << 14, 1 << 18]))
        patch.setattr("oxiseq.live.worker._STRETCH", dice.choice([0, 0.0005, 0.02]))
        folder, decisions, kills = Path(name), list[int](), 0
        service = started(folder, decisions)
        service.queries.register("rises", RISES, options=TIGHT)
        for batch in SENT[: dice.randrange(40, len(SENT))]:
            push(service, batch)
            if dice.random() < 0.2:
                rest(service)
            paused = dice.random() < 0.02
            if paused:  # and the backlog is worked through in one go
                service.queries.pause("rises")
            if paused or dice.random() < 0.08:
                kills += 1
                folder = Path(name) / str(kills)
                folder.mkdir()
                with service.worker.lock:
                    service.journal.backup(folder / FILE_NAME)
                    known = list(decisions)
                    told = all_of(service)
                service.close()
                patch.setattr("oxiseq.live.worker.PAGE", dice.choice([1, 1 << 14, 1 << 18]))
                service = started(folder, decisions := known)
                if paused:
                    push(service, Batch(POWER, f"backlog {kills}", dice.choice(SENT).body))
                    service.queries.resume("rises")
                rest(service)
                assert all_of(service)[: len(told)] == told
        rest(service)
        found = all_of(service)
        assert service.queries.get("rises").resets.count == len(decisions)
        assert found == plainly(service, decisions)
        service.close()


def plainly(service: LiveService, decisions: list[int]) -> list[tuple[str | None, ...]]:
    """The matches of a run over the log, entry by entry, that forgets after these entries."""
    engine = Engine(service.store.kb, Budget())
    query = engine.compile("plain", RISES, "spaseq", {})
    engine.add(query)
    found: list[tuple[str | None, ...]] = []
    for entry in service.journal.log.follow(0, 1 << 30):
        engine.push(entry.stream, engine.unpack([entry.data]))
        for part in engine.collected().found:
            found += unpack_matches(part.data, part.first).rows()
        if entry.position in decisions:
            query.run.forget(0)
    return found


def test_a_decision_waits_for_room_on_the_disk_and_nothing_is_worked_through_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with live(tmp_path) as service:
        service.queries.register("rises", FOR_EVER, options=RESET)
        commit = service.journal.checkpoints.commit_all
        full = FullError("no room")

        def refused(*_: object) -> None:
            raise full

        monkeypatch.setattr(service.journal.checkpoints, "commit_all", refused)
        for batch in SENT[:60]:
            push(service, batch)
        eventually(lambda: bool(service.worker.checkpointer._decisions))
        position = service.worker.position
        for batch in SENT[60:]:
            push(service, batch)
        assert service.worker.position == position < service.journal.log.position()
        monkeypatch.setattr(service.journal.checkpoints, "commit_all", commit)
        rest(service)
        assert service.queries.get("rises").resets.count >= 1
        assert service.worker.error is None


def test_a_decision_is_a_checkpoint(tmp_path: Path) -> None:
    with live(tmp_path, LiveSettings(idle=None, checkpoint=1000)) as service:
        service.queries.register("rises", FOR_EVER, options=RESET)
        for batch in SENT:
            push(service, batch)
        rest(service)
        copy = tmp_path / "copy"
        copy.mkdir()
        service.journal.backup(copy / FILE_NAME)
        resets, before = service.queries.get("rises").resets, rows(service, "rises")
    with Journal(copy / FILE_NAME, read_only=True) as journal:
        latest = journal.checkpoints.latest("rises")
        assert latest is not None
        assert latest.position > 0
        assert latest.matches["rises"] > 0
    with live(copy) as service:
        rest(service)
        assert service.queries.get("rises").resets.count == resets.count
        assert rows(service, "rises") == before
