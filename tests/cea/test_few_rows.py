"""Batches of few rows: what is fed past the order of events gives what the same rows give that wait in it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from loaded import load
from profiles import in_the_gate
from strategies import Dice

from oxiseq.engine.cea.plan import compile_ceql
from oxiseq.engine.events.tuples import TupleRows, read_rows
from oxiseq.engine.run.tuples import TupleRun
from oxiseq.engine.snapshot.saving import restore, save
from oxiseq.engine.terms.dictionary import TermDictionary

FORMULAS = (
    "A AS x; B AS y; A AS z FILTER x[k = 'p'] AND z[v > 4]",
    "A AS x; (A OR B)+ AS y; B AS z FILTER y[v < 6] AND z[w >= 0.5]",
    "A AS x; A AS y; (A AS z OR B AS u) FILTER x[k != 'p']",
)
WINDOWS = ("WITHIN 9 EVENTS", "WITHIN 6 SECONDS", "WITHIN 4 [v]", "")
PARTITIONS = ("", *(f"PARTITION BY {keys}" for keys in ("[k]", "[v]", "[v], [k]", "[w]", "[i]")))
CLAUSES = ("CONSUME BY ANY LIMIT 20", "LIMIT 20", "LIMIT 3")


class Twin:
    """A query whose rows are fed at once, where that is possible, and one whose rows all wait."""

    def __init__(self, text: str, lateness: int) -> None:
        self.plan = compile_ceql(load(text, "ceql"))
        self.terms = TermDictionary(), TermDictionary()
        self.runs = [TupleRun(self.plan, terms, lateness=lateness) for terms in self.terms]
        self.at_once = 0

    def push(self, rows: TupleRows) -> None:
        waiting = TupleRows(rows.time, rows.rows, rows.naming)
        assert not waiting.rising
        late = [run.push("urn:S", each) for run, each in zip(self.runs, (rows, waiting), strict=True)]
        assert [None if each is None else each.time.tolist() for each in late[:1]] == [
            None if each is None else each.time.tolist() for each in late[1:]
        ]
        once = self.runs[0]._at_once
        self.at_once += once is not None and once.time is not None

    def advance(self) -> int:
        one, other = (list(map(plain, run.advance())) for run in self.runs)
        assert one == other
        self.same()
        return len(one)

    def same(self) -> None:
        one, other = ((run.events, run.late, run.matches, run.open, run.order.accepted) for run in self.runs)
        assert one == other

    def move(self) -> None:
        """Both go on from what they save, which is the same."""
        one, other = (save(run, terms) for run, terms in zip(self.runs, self.terms, strict=True))
        assert one == other
        self.terms = TermDictionary(), TermDictionary()
        self.runs = [restore(one, self.plan, terms) for terms in self.terms]


def plain(found: Any) -> list[Any]:
    return [np.asarray(getattr(found, field.name)).tolist() for field in fields(found)]


def table(dice: Dice, clock: int) -> tuple[pa.RecordBatch, int]:
    """Some rows, seldom out of order, and the newest time."""
    times = []
    for _ in range(dice.between(1, 6) if dice.chance(90) else 140):
        clock += dice.between(0, 2) * 1_000_000
        times.append(clock - (dice.between(0, 3) * 1_000_000 if dice.chance(8) else 0))
    count = len(times)
    rows = {
        "time": pa.array(times, pa.int64()),
        "type": pa.array([dice.pick([*"ABC"]) for _ in times]).dictionary_encode(),
        "k": pa.array([dice.pick([*"pq", None]) for _ in times], pa.string()).dictionary_encode(),
        "v": pa.array([dice.between(0, 9) if dice.chance(90) else None for _ in times], pa.int64()),
        "i": pa.array([dice.pick([-1, 1, None]) for _ in times], pa.int16()),
        "w": pa.array([dice.pick([0.0, -0.0, 0.5, float("nan"), 2.0]) for _ in range(count)], pa.float64()),
    }
    if dice.chance(10):
        rows["type"] = rows["type"].dictionary_decode()
    return pa.RecordBatch.from_pydict(rows), clock


@pytest.mark.parametrize("seed", in_the_gate(range(12), range(24)))
def test_few_rows_are_as_others(seed: int) -> None:
    dice = Dice(seed)
    clauses = " ".join(map(dice.pick, (FORMULAS, PARTITIONS, WINDOWS, CLAUSES)))
    twin = Twin(f"VOCAB <urn:> SELECT * FROM S WHERE {clauses}", dice.pick([0, 0, 0, 2_000_000]))
    clock = 1_700_000_000_000_000
    found = 0
    for _ in range(60):
        batch, clock = table(dice, clock)
        for rows in read_rows(batch):
            twin.push(rows)
        if dice.chance(5):
            twin.move()
        if dice.chance(3):
            for run in twin.runs:
                run.punctuate("urn:S", clock)
        if dice.chance(3):
            for run in twin.runs:
                run.settle()
        if dice.chance(2):
            for run in twin.runs:
                run.forget(clock)
        if dice.chance(90):
            found += twin.advance()
        if dice.chance(5):
            twin.move()
    for run in twin.runs:
        run.close()
    found += twin.advance()
    assert found
    assert twin.at_once > 20 or twin.runs[0].lateness
