"""Examples' events as files, and the demonstration."""

from __future__ import annotations

import runpy
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from bokeh_sampledata import stocks
from click.testing import CliRunner
from example_loading import EXAMPLES, load
from rich.console import Console

import oxiseq
from oxiseq.cli import main
from oxiseq.demo import show
from oxiseq.demo.__main__ import main as write_quotes
from oxiseq.demo.show import TICKERS, quotes


@pytest.mark.parametrize("ending", [".nq", ".trig.gz", ".parquet"])
def test_files_give_the_same_matches(tmp_path: Path, ending: str) -> None:
    load("01-smart-grid", "make_events")
    write = runpy.run_path(str(EXAMPLES / "write_events.py"))["write"]
    files = write(load("01-smart-grid", "make_events").streams(), tmp_path, ending)
    folder = EXAMPLES / "01-smart-grid"
    text = (folder / "query.spaseq").read_text(encoding="utf-8")
    matches = oxiseq.run(text, streams=files, kb=folder / "kb.nq")
    assert matches.write(format="json") == load("01-smart-grid").main().write(format="json")


@pytest.mark.parametrize("folder", ["02-fraud", "05-traffic"])
def test_write_events_prints_the_command(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["write_events.py", folder, str(tmp_path)])
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "make_events", raising=False)
    runpy.run_path(str(EXAMPLES / "write_events.py"), run_name="__main__")
    sys.modules.pop("make_events", None)
    command = capsys.readouterr().out
    assert command.startswith("oxiseq run ")
    assert all(f"={file}" in command for file in tmp_path.iterdir())
    assert ("--kb" in command) == (folder == "02-fraud")


@pytest.mark.parametrize(
    ("folder", "found"),
    [("02-fraud", 9), ("10-big-kb", 1), ("12-popular-users", 54), ("14-tsunami", 3), ("15-deliveries", 3)],
)
def test_the_commands_find_the_matches(
    folder: str, found: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "make_events", raising=False)
    commands = runpy.run_path(str(EXAMPLES / "write_events.py"))["commands"](folder, tmp_path, ".nq")
    sys.modules.pop("make_events", None)
    assert [command[1] for command in commands] in (["run"], ["load", "run"])
    for program, *arguments in commands:
        told = CliRunner().invoke(main, arguments)
        assert program == "oxiseq" and told.exit_code == 0, told.stderr
    assert f" · {found} match" in told.stderr


def test_every_query_is_valid() -> None:
    queries = sorted(EXAMPLES.glob("*/*.spaseq"))
    assert len(queries) == 21
    for query in queries:
        assert oxiseq.Query(query).algebra


def test_demo_shows_both_patterns() -> None:
    console = Console(record=True, width=80)
    show(console)
    text = console.export_text()
    assert "39 matches in all, with 25 different lows" in text
    assert "218 matches in all, with 110 different heads" in text
    assert "Microsoft" in text and "2000-10-16" in text
    assert "oxiseq run" in text


def test_demo_writes_its_events(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert write_quotes([str(tmp_path / "quotes.arrow")]) == 0
    assert "3,270 events" in capsys.readouterr().out
    assert write_quotes([]) == 2
    assert write_quotes([str(tmp_path / "quotes.txt")]) == 1


def test_the_quotes_are_those_of_their_source() -> None:
    shipped = {ticker: [] for ticker in TICKERS}
    for quote in quotes():
        shipped[quote.ticker].append((quote.day.isoformat(), quote.price, quote.volume))
    for ticker in TICKERS:
        source = getattr(stocks, ticker)
        rows = zip(source["date"], source["adj_close"], source["volume"], strict=True)
        assert shipped[ticker] == [(day, Decimal(f"{price:.4f}"), volume) for day, price, volume in rows]
