"""Files: each match once, below the operator's folder and nowhere else."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hot_service import Doors, hot
from live_services import eventually

from oxiseq.journal import FullError
from oxiseq.sinks import Allowed
from oxiseq.sinks.files import UNDER_WAY


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def written(doors: Doors, sink: str, count: int) -> None:
    eventually(lambda: doors.sink(sink)["delivered"] >= count)


def test_lines_are_what_readers_are_sent_or_a_template(tmp_path: Path) -> None:
    with hot(tmp_path, Allowed(folder=tmp_path / "out")) as doors:
        doors.put("plain", {"kind": "file", "path": "a/plain.jsonl"})
        doors.put("short", {"kind": "file", "path": "short.jsonl", "template": ["{id}", "{?note}"]})
        doors.push(2, note='a "line"\nand é')
        written(doors, "plain", 2)
        written(doors, "short", 2)
    plain = lines(tmp_path / "out/a/plain.jsonl")
    assert [each["id"] for each in plain] == [1, 2]
    assert list(plain[0]) == ["query", "id", "at", "start", "end", "bindings", "events"]
    assert lines(tmp_path / "out/short.jsonl") == [[1, 'a "line"\nand é'], [2, 'a "line"\nand é']]


def test_what_a_kill_left_behind_is_cut_off(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    sink = {"kind": "file", "path": "a.jsonl", "template": "{id}"}
    with hot(tmp_path, Allowed(folder=tmp_path)) as doors:
        doors.put("s", sink)
        doors.push(3)
        written(doors, "s", 3)
    with file.open("a") as left:
        left.write('4\n5\n{"ha')
    with hot(tmp_path, Allowed(folder=tmp_path)) as doors:
        doors.push(3)
        written(doors, "s", 6)
    assert lines(file) == [1, 2, 3, 4, 5, 6]


def test_a_file_that_is_moved_away_is_begun_anew(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    with hot(tmp_path, Allowed(folder=tmp_path)) as doors:
        doors.put("s", {"kind": "file", "path": "a.jsonl", "template": "{id}"})
        doors.push()
        written(doors, "s", 1)
        file.rename(tmp_path / "old.jsonl")
        doors.push()
        written(doors, "s", 2)
    assert (lines(tmp_path / "old.jsonl"), lines(file)) == ([1], [2])


def test_parquet_is_a_folder_of_files_with_the_same_columns(tmp_path: Path) -> None:
    with hot(tmp_path, Allowed(folder=tmp_path)) as doors:
        doors.put("s", {"kind": "file", "path": "parts", "format": "parquet", "batch": 5, "every": "20s"})
        for _ in range(6):
            doors.push(2)
        written(doors, "s", 10)
        assert doors.sink("s")["waiting"] <= 2
        doors.put("s", {"kind": "file", "path": "parts", "format": "parquet", "batch": 5, "every": "10ms"})
        written(doors, "s", 12)
    names = sorted(each.name for each in (tmp_path / "parts").iterdir())
    assert names == [f"matches-{first:016d}.parquet" for first in (1, 6, 11)]
    table = pq.read_table(tmp_path / "parts")
    assert table["id"].to_pylist() == list(range(1, 13))
    assert table["heat"].to_pylist() == [str(i) for i in range(1, 13)]
    assert table["machine"][0].as_py() == "http://example.org/m1" and table["note"].null_count == 12
    assert str(table.schema.field("at").type) == "timestamp[us, tz=UTC]"


def test_half_a_parquet_file_of_a_kill_is_no_part_of_the_table(tmp_path: Path) -> None:
    parts, elsewhere = tmp_path / "out" / "parts", tmp_path / "elsewhere"
    parts.mkdir(parents=True)
    elsewhere.write_bytes(b"PAR1")
    (parts / UNDER_WAY).symlink_to(elsewhere)
    with hot(tmp_path, Allowed(folder=tmp_path / "out")) as doors:
        doors.put("s", {"kind": "file", "path": "parts", "format": "parquet", "every": "10ms"})
        doors.push(3)
        written(doors, "s", 3)
        (parts / UNDER_WAY).write_bytes(b"PAR1 half")
        assert pq.read_table(parts)["heat"].to_pylist() == ["1", "2", "3"]
        doors.push(2)
        written(doors, "s", 5)
        assert not (parts / UNDER_WAY).exists()
    assert elsewhere.read_bytes() == b"PAR1"


@pytest.mark.parametrize("path", ["../a", "a/../../b", "/etc/passwd", "/a", "", ".", "a\0b", "x" * 1500, "link/a"])
def test_there_is_no_way_out_of_the_folder(tmp_path: Path, path: str) -> None:
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    out.mkdir()
    elsewhere.mkdir()
    (out / "link").symlink_to(elsewhere)
    with hot(tmp_path, Allowed(folder=out)) as doors:
        status, problem = doors.ask("PUT", "/queries/hot/sinks/s", {"kind": "file", "path": path})
        assert status == 400, problem
    assert not list(elsewhere.iterdir()) and not list(out.glob("*.jsonl"))


def test_a_link_that_is_laid_later_is_not_followed(tmp_path: Path) -> None:
    out, victim = tmp_path / "out", tmp_path / "victim"
    out.mkdir()
    victim.write_text("whole")
    with hot(tmp_path, Allowed(folder=out)) as doors:
        doors.put("s", {"kind": "file", "path": "a.jsonl"})
        (out / "a.jsonl").symlink_to(victim)
        doors.push()
        eventually(lambda: doors.sink("s")["error"] is not None)
    assert victim.read_text() == "whole"


def test_a_pipe_is_no_file_and_nobody_waits_for_its_reader(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with hot(tmp_path, Allowed(folder=tmp_path)) as doors:
        doors.put("s", {"kind": "file", "path": "pipe"})
        doors.push()
        eventually(lambda: "no plain file" in (doors.sink("s")["error"] or ""))


@pytest.mark.parametrize(
    ("settings", "status", "told"),
    [
        ({"path": "./x/../a.jsonl"}, 400, "not below"),
        ({"path": "./a.jsonl"}, 409, "writes to a.jsonl"),
        ({"path": "b", "format": "csv"}, 400, "format is one of"),
        ({"path": "b", "format": "parquet", "template": 1}, 400, "takes no template"),
        ({}, 400, "needs path"),
    ],
)
def test_what_is_refused(tmp_path: Path, settings: dict[str, Any], status: int, told: str) -> None:
    with hot(tmp_path, Allowed(folder=tmp_path)) as doors:
        doors.put("first", {"kind": "file", "path": "a.jsonl"})
        found, problem = doors.ask("PUT", "/queries/hot/sinks/s", {"kind": "file", **settings})
        assert found == status and told in problem["detail"]


def test_two_paths_of_one_file_are_one(tmp_path: Path) -> None:
    with hot(tmp_path, Allowed.of(folder=tmp_path)) as doors:
        (tmp_path / "there").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "there")
        doors.put("first", {"kind": "file", "path": "there/a.jsonl"})
        for path in (str(tmp_path / "there/a.jsonl"), "link/a.jsonl"):
            status, problem = doors.ask("PUT", "/queries/hot/sinks/s", {"kind": "file", "path": path})
            assert status == 409 and "writes to there/a.jsonl" in problem["detail"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"path": "t", "format": "parquet"}, {"path": "t/x.jsonl"}),
        ({"path": "t", "format": "parquet"}, {"path": "t/a/b", "format": "parquet"}),
        ({"path": "t/a", "format": "parquet"}, {"path": "t", "format": "parquet"}),
        ({"path": "t/a/x.jsonl"}, {"path": "./t//", "format": "parquet"}),
        ({"path": "t", "format": "parquet"}, {"path": "link/x.jsonl"}),
        ({"path": "t/x.jsonl"}, {"path": "link", "format": "parquet"}),
        ({"path": "t", "format": "parquet"}, {"path": "T/x.jsonl"}),
        ({"path": "x.jsonl"}, {"path": "X.JSONL"}),
        ({"path": "x.jsonl"}, {"path": "hard.jsonl"}),
        ({"path": "x.jsonl"}, {"path": "x.jsonl/y.jsonl"}),
    ],
)
def test_no_sink_writes_above_below_or_into_the_file_of_another(
    tmp_path: Path, first: dict[str, Any], second: dict[str, Any]
) -> None:
    out = tmp_path / "out"
    (out / "t").mkdir(parents=True)
    (out / "link").symlink_to("t")
    if first["path"] == "x.jsonl":
        (out / "x.jsonl").touch()
        (out / "hard.jsonl").hardlink_to(out / "x.jsonl")
    with hot(tmp_path, Allowed.of(folder=out)) as doors:
        for one, other in ((first, second), (second, first)):
            doors.put("first", {"kind": "file", **one})
            status, problem = doors.ask("PUT", "/queries/hot/sinks/s", {"kind": "file", **other})
            assert (status, "the sink 'first' of the query 'hot' writes to" in problem["detail"]) == (409, True)
            assert doors.ask("DELETE", "/queries/hot/sinks/first")[0] == 204


def test_of_two_that_an_earlier_version_let_write_to_one_place_the_second_rests(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    allowed = Allowed.of(folder=tmp_path / "out")
    with hot(tmp_path, allowed) as doors:
        doors.service.journal.sinks.put("hot", "a", {"kind": "file", "path": "t", "format": "parquet", "every": "0s"})
        doors.service.journal.sinks.put("hot", "b", {"kind": "file", "path": "t/x.jsonl"})
    with hot(tmp_path, allowed) as doors:
        doors.push(3)
        written(doors, "a", 3)
        assert doors.sink("b")["delivered"] == 0
        assert "sink b of query hot rests, give it another path" in caplog.text
        doors.put("b", {"kind": "file", "path": "u/x.jsonl"})
        written(doors, "b", 3)


def test_sinks_beside_each_other_and_one_put_again_are_taken(tmp_path: Path) -> None:
    with hot(tmp_path, Allowed.of(folder=tmp_path)) as doors:
        for name, path in (("a", "t/a"), ("b", "t/ab"), ("c", "t/b/c"), ("a", "t/a"), ("b", "t/ab/c"), ("b", "t/ab")):
            doors.put(name, {"kind": "file", "path": path, "format": "parquet"})


@pytest.mark.parametrize(
    ("path", "taken"),
    [
        ("data/journal.oxiseq", False),
        ("data/journal.oxiseq-wal", False),
        ("data/Journal.oxiseq.lock", False),
        ("data/CURRENT", False),
        ("data/000123.sst", False),
        ("data/journal.oxiseq/x.jsonl", False),
        ("data/bridges/mill.position", False),
        ("data/bridges", False),
        ("data/oxiseq-snapshots/x", False),
        ("data", False),
        ("link/journal.oxiseq", False),
        ("tokens", False),
        ("secrets/chat", False),
        ("logs/mill.nq", False),
        ("logs", False),
        ("logs/alerts.jsonl", True),
        ("data/out/alerts.jsonl", True),
        ("data2/journal.oxiseq", True),
    ],
)
def test_no_sink_writes_into_files_of_the_server(tmp_path: Path, path: str, taken: bool) -> None:
    """Of the journal, the store, bridges and what these follow, tokens and secrets, where the folder has them all."""
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "link").symlink_to(data)
    spare = (tmp_path / "tokens", tmp_path / "secrets", tmp_path / "logs/mill.nq")
    with hot(data, Allowed.of(folder=tmp_path), sinks_spare=spare) as doors:
        settings = {"kind": "file", "path": path, **({} if "." in path else {"format": "parquet"})}
        status, problem = doors.ask("PUT", "/queries/hot/sinks/s", settings)
        assert status == (200 if taken else 409), problem
        assert taken or "is a file of the server itself" in problem["detail"]


def test_a_disk_that_is_full_while_matches_are_given_up_does_not_end_the_sink(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hot(tmp_path, Allowed(folder=tmp_path)) as doors:
        noted, rows = doors.service.journal.sinks.advance, doors.service.journal.sinks
        tried: list[int] = []

        def full(*given: Any, **more: Any) -> None:
            tried.append(1)
            if len(tried) < 3:
                raise FullError("no room")
            noted(*given, **more)

        monkeypatch.setattr(rows, "advance", full)
        os.mkfifo(tmp_path / "pipe")
        doors.put("s", {"kind": "file", "path": "pipe", "give_up": "1ms"})
        doors.push()
        eventually(lambda: doors.sink("s")["lost"] == 1)


def test_without_a_folder_no_file_is_written(tmp_path: Path) -> None:
    with hot(tmp_path) as doors:
        status, problem = doors.ask("PUT", "/queries/hot/sinks/s", {"kind": "file", "path": "a"})
        assert status == 400 and "--sink-folder" in problem["detail"]
