"""A command that there is none of: what is meant, or what there is."""

from __future__ import annotations

from pathlib import Path

from cli_files import oxiseq


def test_an_unknown_command_is_answered_with_a_suggestion(folder: Path) -> None:
    for given, hint in (
        ("chek", "did you mean check?"),
        ("nosuch", "the commands are run, check, explain"),
        (folder / "jumps.spaseq", f"did you mean oxiseq run {folder / 'jumps.spaseq'}?"),
    ):
        told = oxiseq(given)
        assert told.exit_code == 2 and hint in told.stderr


def test_a_column_that_there_is_not_says_how_it_is_named(folder: Path) -> None:
    table = folder / "trades.csv"
    table.write_text("kind,when\nSELL,1\n")
    query = folder / "q.ceql"
    query.write_text("VOCAB <http://e/> SELECT * FROM S WHERE SELL WITHIN 1 MINUTE")
    assert "say which is meant with --type-column" in oxiseq("run", query, "-s", table).stderr
    told = oxiseq("run", query, "-s", table, "--type-column", "kind")
    assert "no column 'time' for the time; it has kind, when: say which is meant with --time-column" in told.stderr
    table.write_text("type,time\nSELL,yesterday\n")
    assert "2024-05-01T10:00:00Z, 2024-05-01 or integer" in oxiseq("run", query, "-s", table).stderr
