"""`oxiseq run`: streams, knowledge bases, options, errors, exit status."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from threading import Event

import pytest
from cli_files import BEGIN_MICROSECONDS, EVENTS, EX, KB, STREAM, event, oxiseq, payment, query, write
from pyoxigraph import RdfFormat, Store

from oxiseq.warmup import first_run


def rows(*arguments: object, stdin: str | None = None) -> list[dict[str, str]]:
    """Bindings of the matches, IRIs shortened."""
    result = oxiseq("run", *arguments, "--format", "json", stdin=stdin)
    assert result.exit_code == 0, result.stderr
    bindings = json.loads(result.stdout)["results"]["bindings"]
    return [{name: term["value"].removeprefix(EX) for name, term in row.items()} for row in bindings]


def test_matches_come_in_order_of_end_time(folder: Path) -> None:
    found = rows(folder / "jumps.spaseq", "--stream", f"S={folder}/payments.nq")
    assert found == [
        {"who": "ann", "first": "3", "second": "40"},
        {"who": "bob", "first": "50", "second": "600"},
    ]


@pytest.mark.parametrize("name", ["S", STREAM, f"<{STREAM}>"])
def test_a_stream_is_named_by_the_query_or_by_its_iri(folder: Path, name: str) -> None:
    assert len(rows(folder / "jumps.spaseq", "--stream", f"{name}={folder}/payments.nq")) == 2


def test_the_only_stream_needs_no_name(folder: Path) -> None:
    assert len(rows(folder / "jumps.spaseq", "-s", folder / "payments.nq")) == 2


def test_a_stream_iri_may_hold_an_equals_sign(folder: Path) -> None:
    text = query().replace(STREAM, f"{EX}s?a=b")
    path = write(folder, "odd.spaseq", text)
    assert len(rows(path, "-s", f"{EX}s?a=b={folder}/payments.nq")) == 2


def test_a_query_from_stdin(folder: Path) -> None:
    assert len(rows("-", "-s", folder / "payments.nq", stdin=query())) == 2


def test_gzip_events(folder: Path) -> None:
    (folder / "payments.nq.gz").write_bytes(gzip.compress(EVENTS.encode()))
    assert len(rows(folder / "jumps.spaseq", "-s", folder / "payments.nq.gz")) == 2


def test_an_empty_stream_has_no_matches_and_is_no_error(folder: Path) -> None:
    empty = write(folder, "empty.nq", "")
    result = oxiseq("run", folder / "jumps.spaseq", "-s", empty)
    assert result.exit_code == 0
    assert "0 events · 0 matches" in result.stderr


def test_the_summary_counts_events_and_matches(folder: Path) -> None:
    result = oxiseq("run", folder / "jumps.spaseq", "-s", folder / "payments.nq")
    assert "4 events · 2 matches · 0 late · " in result.stderr
    assert "events/s" not in result.stderr  # of four events it would be the rate of loading kernels
    assert "skipped" not in result.stderr


def test_the_summary_has_a_rate_from_a_thousand_events_on(folder: Path) -> None:
    many = write(folder, "many.nq", "".join(event(f"e{i}", i, [payment("ann", 3)]) for i in range(1_000)))
    result = oxiseq("run", folder / "jumps.spaseq", "-s", many)
    assert "events/s" in result.stderr


def test_quiet_says_nothing(folder: Path) -> None:
    assert oxiseq("run", folder / "jumps.spaseq", "-s", folder / "payments.nq", "-q").stderr == ""


def test_a_stream_without_events_is_noted(folder: Path) -> None:
    text = query().replace("\nWHERE", f"\nFROM STREAM T <{EX}other>\nWHERE")
    result = oxiseq("run", write(folder, "two.spaseq", text), "-s", f"S={folder}/payments.nq")
    assert result.exit_code == 0
    assert f"note: no events are given for the stream T <{EX}other>" in result.stderr


# --- knowledge base -------------------------------------------------------------------------------


def test_several_kb_files_are_one(folder: Path) -> None:
    first, second = (write(folder, f"kb{i}.nq", line) for i, line in enumerate(KB.splitlines(keepends=True)))
    arguments = [folder / "named.spaseq", "-s", folder / "payments.nq", "--kb", first]
    assert [row["name"] for row in rows(*arguments)] == ["Ann"]
    assert [row["name"] for row in rows(*arguments, "--kb", second)] == ["Ann", "Bob"]


def test_a_store_folder_as_kb_alone_and_with_a_file(folder: Path) -> None:
    ann, bob = KB.splitlines()
    store = Store(str(folder / "store"))
    store.load(ann.encode(), format=RdfFormat.N_QUADS)
    store.flush()
    del store
    arguments = [folder / "named.spaseq", "-s", folder / "payments.nq", "--kb", folder / "store"]
    assert [row["name"] for row in rows(*arguments)] == ["Ann"]
    assert len(rows(*arguments, "--kb", write(folder, "bob.nq", bob))) == 2


@pytest.mark.parametrize("more", [[], ["--kb", "names.nq"]], ids=["alone", "with another"])
def test_a_kb_that_does_not_exist(folder: Path, more: list[str]) -> None:
    kbs = [str(folder / x) if x.endswith(".nq") else x for x in more]
    result = oxiseq("run", folder / "named.spaseq", "-s", folder / "payments.nq", "--kb", folder / "no.ttl", *kbs)
    assert result.exit_code == 1
    assert f"error: {folder}/no.ttl: there is no such file" in result.stderr


def test_a_malformed_kb_is_told_with_its_line(folder: Path) -> None:
    kb = write(folder, "bad.nq", KB + "<a\n")
    result = oxiseq("run", folder / "named.spaseq", "-s", folder / "payments.nq", "--kb", kb)
    assert result.exit_code == 1
    assert f"{kb}:3: " in result.stderr


# --- start, lateness, sort ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "start", ["2024-05-01T10:00:30Z", "2024-05-01T12:00:30+02:00", BEGIN_MICROSECONDS + 30_000_000]
)
def test_events_before_start_are_not_seen(folder: Path, start: object) -> None:
    found = rows(folder / "jumps.spaseq", "-s", folder / "payments.nq", "--origin", start)
    assert [row["who"] for row in found] == ["bob"]


def test_an_event_of_a_file_is_never_late(folder: Path) -> None:
    payments = [("ann", 3, 1), ("eve", 1, 3), ("ann", 90, 2)]
    text = "".join(event(f"e{who}{minute}", minute, [payment(who, amount)]) for who, amount, minute in payments)
    path = write(folder, "late.nq", text)
    for lateness in ("0s", "1m", "60s", "PT1M", "60000000us", "60000ms"):
        patient = oxiseq("run", folder / "jumps.spaseq", "-s", path, "--lateness", lateness)
        assert "3 events · 1 match · 0 late" in patient.stderr, lateness


def test_sort_orders_matches_of_equal_end_time_by_their_events(folder: Path) -> None:
    text = query("SELECT ?who ?first ?second", seq="A : B")
    path = write(folder, "any.spaseq", text)
    found = rows(path, "-s", folder / "payments.nq", "--sort")
    assert [(row["who"], row["first"], row["second"]) for row in found] == [
        ("ann", "3", "40"),
        ("ann", "3", "60"),
        ("bob", "50", "600"),
    ]


def test_matches_of_a_trailing_negation_are_in_order_of_end_time(folder: Path) -> None:
    result = oxiseq("run", folder / "unpaid.spaseq", "-s", folder / "payments.nq")
    times = [line.split()[0] for line in result.stdout.splitlines()[2:]]
    assert times == sorted(times)
    assert len(times) == 3


def test_the_first_run_says_that_kernels_are_compiled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_run, "_prepared", Event())
    monkeypatch.setattr(first_run, "is_compiled", lambda: False)
    monkeypatch.setattr(first_run.ahead, "is_compiled", lambda kernel: False)
    monkeypatch.setattr(first_run, "compile_ahead", lambda: None)
    result = oxiseq("run", folder / "jumps.spaseq", "-s", folder / "payments.nq")
    assert "note: first run, the kernels are compiled now" in result.stderr


def test_another_time_predicate(folder: Path) -> None:
    other = "urn:at"
    path = write(folder, "other.nq", EVENTS.replace("http://www.w3.org/ns/prov#generatedAtTime", other))
    assert len(rows(folder / "jumps.spaseq", "-s", path, "--time-predicate", other)) == 2


# --- what is wrong --------------------------------------------------------------------------------


def test_a_wrong_query_ends_with_the_caret_and_status_1(folder: Path) -> None:
    path = write(folder, "wrong.spaseq", query(seq="A; Bb"))
    result = oxiseq("run", path, "-s", folder / "payments.nq")
    assert result.exit_code == 1
    assert f"error: {path}: " in result.stderr
    assert "^^" in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_a_malformed_line_stops_with_file_and_line(folder: Path) -> None:
    path = write(folder, "bad.nq", EVENTS + "<a> nonsense .\n")
    result = oxiseq("run", folder / "jumps.spaseq", "-s", path)
    assert result.exit_code == 1
    assert f"error: {path}:{EVENTS.count(chr(10)) + 1}: " in result.stderr


def test_skip_counts_malformed_lines_and_lists_the_first(folder: Path) -> None:
    path = write(folder, "bad.nq", EVENTS + "nonsense\n" * 12)
    result = oxiseq("run", folder / "jumps.spaseq", "-s", path, "--on-error", "skip")
    assert result.exit_code == 0
    assert "4 events · 2 matches · 0 late · 12 skipped" in result.stderr
    assert result.stderr.count(f"skipped: {path}:") == 10
    assert f"skipped: 2 more of {path}" in result.stderr


def test_an_event_file_that_does_not_exist(folder: Path) -> None:
    result = oxiseq("run", folder / "jumps.spaseq", "-s", folder / "no.nq")
    assert result.exit_code == 1
    assert f"error: {folder}/no.nq: there is no such file" in result.stderr


def test_an_output_that_cannot_be_written(folder: Path) -> None:
    output = folder / "no" / "out.csv"
    result = oxiseq("run", folder / "jumps.spaseq", "-s", folder / "payments.nq", "-o", output)
    assert result.exit_code == 1
    assert "No such file or directory" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["jumps.spaseq"], "give --stream or --location"),
        (["no.spaseq", "-s", "payments.nq"], "No such file"),
        (["jumps.spaseq", "-s", "X=no.nq"], "NAME=FILE with one of S"),
        (["jumps.spaseq", "-s", "S"], "which file has the events of S? Write S=FILE"),
        (["jumps.spaseq", "-s", "S=payments.nq", "-s", "S=payments.nq"], "given twice"),
        (["jumps.spaseq", "-s", "payments.nq", "--origin", "noon"], "is not a time"),
        (["jumps.spaseq", "-s", "payments.nq", "--lateness", "5 parsecs"], "is not a duration"),
        (["jumps.spaseq", "-s", "payments.nq", "--lateness", "-5s"], "is out of range"),
        (["jumps.spaseq", "-s", "payments.nq", "--time-predicate", "no iri"], "is not an IRI"),
        (["jumps.spaseq", "-s", "payments.nq", "--format", "xml"], "is not one of"),
        (["jumps.spaseq", "-s", "payments.nq", "--on-error", "ignore"], "is not one of"),
    ],
    ids=lambda x: x if isinstance(x, str) else None,
)
def test_a_wrong_command_line_ends_with_status_2(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], told: str
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "300")
    result = oxiseq("run", *arguments)
    assert result.exit_code == 2
    assert told in " ".join(result.stderr.split())
