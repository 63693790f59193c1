"""The example of continuous SPARQL answers all of its twelve queries, from files as well.

That the answers are right is shown in ../benchmarks_of_others/test_citybench.py.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from example_loading import EXAMPLES, load

from oxiseq.cli import main

QUERIES = sorted(path.stem for path in (EXAMPLES / "16-smart-city").glob("q*.rspql"))


def test_each_query_has_answers() -> None:
    found = load("16-smart-city").main()
    assert list(found) == QUERIES and all(found.values())


def test_a_command_for_each_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "make_events", raising=False)
    commands = runpy.run_path(str(EXAMPLES / "write_events.py"))["commands"]("16-smart-city", tmp_path, ".nq")
    sys.modules.pop("make_events", None)
    assert [Path(command[2]).stem for command in commands] == QUERIES
    for command in (commands[3], commands[10]):
        told = CliRunner().invoke(main, command[1:])
        assert told.exit_code == 0, told.stderr
    assert " · 2 matches" in told.stderr
