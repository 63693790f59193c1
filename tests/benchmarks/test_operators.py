"""Operators over windows at a tiny size: the store that is asked again tells what the engine tells."""

from __future__ import annotations

from pathlib import Path

import pytest
from profiles import in_the_gate

from benchmarks.operators import __main__ as command
from benchmarks.operators.page import Found, missed
from benchmarks.operators.queries import IN_TIME, OPERATORS, InTime, Operator
from benchmarks.operators.stream import SECOND, Sensors
from benchmarks.operators.ways import Rate, Running, asked_again, told_by_engine


def test_streams_are_the_same_every_time_and_for_the_store() -> None:
    sensors = Sensors(100, 80)
    batch, quads = sensors.batch(0, 80), [*sensors.quads(0, 80)]
    assert batch.time.tolist() == [i * SECOND for i in range(80)]
    assert Sensors(100, 80).batch(0, 80).object.tolist() == batch.object.tolist()
    columns = zip(batch.subject.tolist(), batch.predicate.tolist(), batch.object.tolist(), strict=True)
    coded = [tuple(sensors.terms.term(id) for id in triple) for triple in columns]
    assert coded == [(q.subject, q.predicate, q.object) for event in quads for q in event]


IN_THE_GATE = {"join", "GROUP BY", "path"}


@pytest.mark.parametrize(
    "query", in_the_gate([each for each in OPERATORS if each.name in IN_THE_GATE], OPERATORS), ids=lambda q: q.name
)
def test_the_store_tells_what_the_engine_tells(query: Operator) -> None:
    rate, events, told = asked_again(query, 50, 0.03)
    assert rate > 0
    assert told_by_engine(query, 50, events) == told


@pytest.mark.parametrize("query", IN_TIME, ids=lambda q: q.name)
def test_orders_in_time_have_answers(query: InTime) -> None:
    run = Running(query, 400, Sensors(40, 400))
    assert sum(len(batch) for batch in run.push(400, 100)[0]) > 0


def test_the_command_writes_its_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    assert command.main(["--most", "100", "--budget", "0.001", "--only", "BIND", "--output", str(page)]) in (0, 2)
    assert page.read_text().count("| BIND |") == 3
    assert "Pushes of one event, microseconds" in capsys.readouterr().out


def test_what_is_not_as_asked_is_said() -> None:
    slow = Found("BIND", {10_000: Rate(1e5, 80.0)}, {10_000: 1_000.0})
    steep = Found("UNION", {1_000: Rate(9e5, 20.0), 1_000_000: Rate(2e5, 90.0)})
    using = [Found("SEQ, two", {100: Rate(4e5, 9.0)}), Found("SEQ, CONSUME", {100: Rate(1e5, 9.0)})]
    matching = Found("MATCH, three", {100: Rate(5e4, 9.0)})
    assert [*missed([slow, steep, *using, matching])] == [
        "BIND, 10,000 triples: 12.5 times the store, in single pushes or batches",
        "BIND, 10,000 triples: 80 us a push of one event",
        "UNION: 4.5 times more per event at the largest window",
        "MATCH, 100 triples: 50,000 events/s",
        "SEQ, CONSUME, 100 triples: 4.0 times the cost without",
    ]
