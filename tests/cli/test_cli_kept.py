"""`oxiseq run --location` and `oxiseq backup`: the event log of a folder."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from cli_files import BEGIN_MICROSECONDS, EX, KB, STREAM, oxiseq
from pyoxigraph import RdfFormat, Store

from oxiseq.engine.events.open import open_events
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.journal import FILE_NAME, Journal

MINUTE = 60_000_000


@pytest.fixture
def data(folder: Path) -> Path:
    """A server's folder: a store with the names, and a log of the payments."""
    location = folder / "data"
    store = Store(str(location))
    store.load(KB.encode(), format=RdfFormat.N_QUADS)
    del store
    terms = TermDictionary()
    with Journal(location / FILE_NAME) as journal:
        journal.streams.create(STREAM)
        journal.streams.create(f"{EX}unread")
        for batch in open_events(folder / "payments.nq", terms):
            for i in range(len(batch)):
                journal.log.append_batch(STREAM, batch.slice(i, i + 1), terms)
    return location


def seconds(*arguments: object) -> list[str]:
    """?second of the matches."""
    result = oxiseq("run", *arguments, "--format", "json")
    assert result.exit_code == 0, result.stderr
    return [row["second"]["value"] for row in json.loads(result.stdout)["results"]["bindings"]]


@pytest.mark.parametrize("format_", ["csv", "json", "table", "tsv"])
@pytest.mark.parametrize("query", ["jumps", "unpaid", "ask"])
def test_a_replay_writes_what_a_run_over_the_same_events_writes(
    folder: Path, data: Path, query: str, format_: str
) -> None:
    expected = oxiseq("run", folder / f"{query}.spaseq", "-s", folder / "payments.nq", "-f", format_, "--sort")
    given = oxiseq("run", folder / f"{query}.spaseq", "--location", data, "-f", format_, "--sort")
    assert given.exit_code == 0
    assert given.stdout == expected.stdout


def test_a_range_of_time_has_its_begin_and_not_its_end(folder: Path, data: Path) -> None:
    query = folder / "jumps.spaseq"
    assert seconds(query, "--location", data) == ["40", "600"]
    assert seconds(query, "-l", data, "--since", "2024-05-01T10:01:00Z") == ["600"]
    assert seconds(query, "-l", data, "--until", BEGIN_MICROSECONDS + 3 * MINUTE) == ["40"]
    assert seconds(query, "-l", data, "--since", BEGIN_MICROSECONDS, "--until", BEGIN_MICROSECONDS + 1) == []


def test_the_knowledge_base_is_the_store_in_the_folder_unless_another_is_given(folder: Path, data: Path) -> None:
    assert seconds(folder / "named.spaseq", "-l", data) == ["40", "600"]
    only_ann = folder / "ann.nq"
    only_ann.write_text(KB.splitlines()[0])
    assert seconds(folder / "named.spaseq", "-l", data, "--kb", only_ann) == ["40"]


def test_a_folder_without_a_store_has_no_knowledge(folder: Path, data: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / FILE_NAME).write_bytes((data / FILE_NAME).read_bytes())
    assert seconds(folder / "jumps.spaseq", "-l", alone) == ["40", "600"]
    assert seconds(folder / "named.spaseq", "-l", alone) == []


def test_a_replay_while_a_server_writes(folder: Path, data: Path) -> None:
    with Journal(data / FILE_NAME) as journal:
        assert seconds(folder / "jumps.spaseq", "-l", data) == ["40", "600"]
        journal.log.advance(STREAM, 1)


def test_the_summary_and_a_stream_that_the_log_does_not_have(folder: Path, data: Path) -> None:
    result = oxiseq("run", folder / "jumps.spaseq", "-l", data)
    assert "4 events · 2 matches" in result.stderr
    other = folder / "other.spaseq"
    other.write_text((folder / "jumps.spaseq").read_text().replace(STREAM, f"{EX}elsewhere"))
    result = oxiseq("run", other, "-l", data)
    assert result.exit_code == 0
    assert f"no events are given for the stream S <{EX}elsewhere>" in result.stderr


def test_a_replay_says_of_a_query_over_windows_what_a_run_says(folder: Path, data: Path) -> None:
    query = folder / "paid.rspql"
    query.write_text(
        f"PREFIX : <{EX}> SELECT ?n FROM STREAM <{STREAM}> [RANGE PT1H STEP PT1S] WHERE {{ ?who :paid ?n }}"
    )
    for asked in (
        ["--stream-operator", "RSTREAM"],
        ["--evaluation-times", BEGIN_MICROSECONDS + MINUTE, "--evaluation-times", BEGIN_MICROSECONDS],
    ):
        expected = oxiseq("run", query, "-s", folder / "payments.nq", "-f", "csv", *asked)
        given = oxiseq("run", query, "-l", data, "-f", "csv", *asked)
        assert given.exit_code == 0 and given.stdout == expected.stdout, given.stderr
        assert given.stdout != oxiseq("run", query, "-l", data, "-f", "csv").stdout
    refused = oxiseq("run", folder / "jumps.spaseq", "-l", data, "--consumption", "RECENT")
    assert refused.exit_code == 1 and "consumption is for" in refused.stderr


def test_a_folder_without_a_log_is_told(folder: Path) -> None:
    for command in (["run", folder / "jumps.spaseq"], ["backup", folder / "copy"]):
        result = oxiseq(*command, "--location", folder)
        assert result.exit_code == 1
        assert f"{folder / FILE_NAME}: there is no journal" in result.stderr
        assert oxiseq(*command, "--location", folder / "nowhere").exit_code == 2


def test_a_backup_can_be_replayed_when_it_is_restored(folder: Path, data: Path) -> None:
    copy = folder / "copy" / FILE_NAME
    copy.parent.mkdir()
    with Journal(data / FILE_NAME):  # a server is running
        result = oxiseq("backup", "--location", data, copy)
    assert result.exit_code == 0
    assert f"{copy.stat().st_size:,} bytes" in result.stderr
    refused = oxiseq("run", folder / "jumps.spaseq", "-l", copy.parent)
    assert refused.exit_code == 1 and "a backup becomes one by `oxiseq restore`" in refused.stderr
    assert oxiseq("restore", copy, "-l", folder / "restored").exit_code == 0
    assert seconds(folder / "jumps.spaseq", "-l", folder / "restored") == ["40", "600"]
    assert oxiseq("backup", "-q", "-l", data, copy).stderr == ""


def test_a_backup_of_a_damaged_log_says_so(folder: Path, data: Path) -> None:
    with closing(sqlite3.connect(data / FILE_NAME)) as file:
        file.execute("UPDATE stream SET next = 77")
        file.commit()
    result = oxiseq("backup", "-l", data, folder / "copy")
    assert result.exit_code == 1
    assert "instead of 77" in result.stderr
    assert not (folder / "copy").exists()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["-s", "payments.nq", "-l", "data"], "give --stream or --location"),
        ([], "give --stream or --location"),
        (["-s", "payments.nq", "--since", "2024-05-01"], "--since and --until are for --location"),
        (["-s", "payments.nq", "--until", "0"], "--since and --until are for --location"),
    ],
)
def test_events_have_one_place(folder: Path, data: Path, given: list[str], told: str) -> None:
    result = oxiseq("run", folder / "jumps.spaseq", *(folder / g if g in ("payments.nq", "data") else g for g in given))
    assert result.exit_code == 2
    assert told in result.stderr
