"""The gallery's notebook runs from top to bottom, and shows matches, why and queries without internals."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from example_loading import cells_run

NOTEBOOK = Path(__file__).parents[2] / "examples" / "gallery.ipynb"
INTERNAL = ("nodes", "buckets", "touched", "aged", "groups")


def shown() -> list[str]:
    """What each code cell prints, and the HTML of its last expression, as a notebook shows it."""
    return [out + (value._repr_html_() if value is not None else "") for out, value in cells_run(NOTEBOOK)]


def test_every_cell_runs_and_shows_what_it_says() -> None:
    listed, automaton, matches, match, why, compared, mistake, running, live, other, rows, frame = shown()
    assert len(listed.splitlines()) > 12 and "fraud" in listed
    for html in (automaton, matches, match, why, running, live, other):
        ElementTree.fromstring(f"<div>{html}</div>")
        assert not [word for word in INTERNAL if f"<th>{word}</th>" in html]
    assert "<svg" in automaton and "<svg" in matches and "<svg" in live and "<svg" in other
    assert "<svg" in rows and "press" in rows
    assert "<th>first</th>" in frame and "96.5" in frame
    assert "<svg" in match and "<th>?" in match and "background:" in why
    assert "gained" in compared
    assert "hint: did you mean A?" in mistake and "^^" in mistake and "Traceback" not in mistake
