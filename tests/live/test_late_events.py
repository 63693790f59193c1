"""Late events of a served query are returned as those of one in memory are."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import oxiseq

S = "http://e/s"
QUERY = (
    "PREFIX : <http://e/> SELECT ?a WITHIN 1 MINUTES SLIDING FROM STREAM S <http://e/s> "
    "WHERE { SEQ(A) DEFINE GPM A ON S { ?t :v ?a } }"
)
EVENTS = [(10_000_000, "1"), (3_000_000, "2"), (20_000_000, "3"), (4_000_000, "4")]


def push(stream: oxiseq.Stream, events: list[tuple[int, str]]) -> None:
    for time, value in events:
        stream.push(f"<http://e/x> <http://e/v> {value} . <http://e/x> <http://e/w> [] .", time)


@pytest.mark.parametrize("served", [False, True])
def test_late_events(served: bool, tmp_path: Path) -> None:
    with oxiseq.open(tmp_path / "folder") if served else oxiseq.open() as store:
        query = store.register(QUERY, name="q")
        push(store.stream(S), EVENTS)
        late = query.drain_late_events()
        assert [(each.stream, each.time_us, len(each.graph)) for each in late] == [(S, 3_000_000, 2), (S, 4_000_000, 2)]
        assert query.late_count == 2 and query.drain_late_events() == []
        push(store.stream(S), [(30_000_000, "5"), (5_000_000, "6")])
        assert [each.time_us for each in query.drain_late_events()] == [5_000_000]


def test_the_newest_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with oxiseq.open(tmp_path / "folder") as store:
        query = store.register(QUERY, name="q")
        stream = store.stream(S)
        stream.extend([(2_000_000_000, "<http://e/x> <http://e/v> 1 .")])
        stream.extend([(i, f"<http://e/x> <http://e/v> {i} .") for i in range(1_200)])
        assert [query.drain_late_events()[i].time_us for i in (0,)] == [200]
        assert query.late_count == 1_200


@pytest.mark.parametrize("served", [False, True])
def test_a_list_that_is_pushed_out_of_order_is_told(served: bool, tmp_path: Path) -> None:
    events = [(time, f"<http://e/x> <http://e/v> {value} .") for time, value in EVENTS]
    with oxiseq.open(tmp_path / "folder") if served else oxiseq.open() as store:
        store.register(QUERY, name="q")
        with pytest.warns(oxiseq.LateWarning, match="2 of 4 events were late.*sort them by time first.*lateness="):
            store.stream(S).extend(events)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            store.stream(S).extend([(40_000_000, events[0][1])])
