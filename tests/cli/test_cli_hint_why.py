"""A run without matches says how to ask why: the line, pasted into a shell, works."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from cli_files import EVENTS, EX, GPMS, KB, STREAM, oxiseq, query, write
from test_cli_why import log

NEVER = GPMS.replace("10 *", "1000 *")
MAIN = "from oxiseq.cli import main; main(prog_name='oxiseq')"


def line_of(stderr: str) -> str:
    """What stands behind `why not:`, in one line."""
    (line,) = [line for line in stderr.splitlines() if line.startswith("why not: ")]
    return line.removeprefix("why not: ")


def asked(*arguments: object) -> str:
    """What `why` answers to the line that `run` gives."""
    result = oxiseq("run", *arguments)
    assert result.exit_code == 0, result.stderr
    program, *words = shlex.split(line_of(result.stderr))
    assert program == "oxiseq"
    told = oxiseq(*words)
    assert told.exit_code == 0, told.stderr
    return told.stdout


def by_shell(folder: Path, line: str) -> str:
    """What a shell prints for the line; `oxiseq` is on its path."""
    program = folder / "bin" / "oxiseq"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c {shlex.quote(MAIN)} "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["sh", "-c", line],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout


@pytest.fixture(autouse=True)
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def test_matches_need_no_such_line(folder: Path) -> None:
    result = oxiseq("run", "jumps.spaseq", "-s", "payments.nq")
    assert "why" not in result.stderr
    assert "why" not in oxiseq("run", write(folder, "n.spaseq", query(gpms=NEVER)), "-s", "payments.nq", "-q").stderr


def test_the_line_names_streams_kb_and_options(folder: Path) -> None:
    write(folder, "a query's.txt", query(gpms=NEVER.replace("FILTER", "GRAPH ?g { ?who :name ?name } FILTER")))
    write(folder, "some payments.nq", EVENTS)
    write(folder, "names; more.nt", "\n".join(line.rsplit(" <", 1)[0] + " ." for line in KB.splitlines()))
    told = asked(
        "a query's.txt",
        "--language",
        "spaseq",
        "-s",
        "S=some payments.nq",
        "-k",
        f"{EX}kb=names; more.nt",
        "--lateness",
        "5s",
        "--origin",
        "-5",
        "--on-error",
        "skip",
    )
    assert "0 matches" in told
    assert "without a filter, B: FILTER(?second >= 1000 * ?first)" in told


def test_a_shell_understands_it(folder: Path) -> None:
    write(folder, "it's $HOME.spaseq", query(gpms=NEVER))
    line = line_of(oxiseq("run", "it's $HOME.spaseq", "-s", f"{STREAM}=payments.nq").stderr)
    assert "without a filter, B: FILTER(?second >= 1000 * ?first)" in by_shell(folder, line)


def test_a_query_of_stdin_is_in_the_line(folder: Path) -> None:
    text = query(gpms=NEVER.replace("FILTER(", r"FILTER(REGEX(STR(?who), '\\w') && STR(?who) != '5%s' && "))
    line = line_of(oxiseq("run", "-", "-s", "payments.nq", stdin=text).stderr)
    assert "without a filter, B: FILTER(?second >= 1000 * ?first)" in by_shell(folder, line)


def test_other_languages(folder: Path) -> None:
    csv = write(folder, "trades.csv", "kind,when,price\nSELL,1,4\nBUY,2,3\n")
    ceql = write(folder, "b.txt", "VOCAB <http://e/> SELECT * FROM S WHERE SELL AS s ; BUY AS b FILTER b[price > 5]")
    told = asked(ceql, "--language", "ceql", "-s", csv, "--type-column", "kind", "--time-column", "when")
    assert "without a filter, BUY AS b[price > 5]: 1 more" in told
    window = f"PREFIX : <{EX}> SELECT * FROM STREAM <{STREAM}> [RANGE 9 MINUTES SLIDE 1 SECONDS] {{ ?x :sold ?y }}"
    assert "?x :sold ?y" in asked(write(folder, "w.spectra", window), "-s", "payments.nq")
    rich = f"PREFIX : <{EX}> SELECT ?who FROM STREAM <{STREAM}> WHERE {{ ?who :rich 2 }}"
    rule = f"PREFIX : <{EX}> CONSTRUCT {{ ?who :rich 1 }} WHERE {{ ?who :paid ?much FILTER(?much >= 50) }}"
    assert "rich" in asked(
        write(folder, "r.epsparql", rich), "-s", "payments.nq", "--rules", write(folder, "rule.epsparql", rule)
    )


def test_a_replay_asks_the_same_folder(folder: Path) -> None:

    location = log(folder)
    write(folder, "never.spaseq", query(gpms=NEVER))
    result = oxiseq("run", "never.spaseq", "--location", location, "--since", 0)
    words = shlex.split(line_of(result.stderr))
    assert "without a filter, B: FILTER(?second >= 1000 * ?first)" in oxiseq(*words[1:]).stdout
