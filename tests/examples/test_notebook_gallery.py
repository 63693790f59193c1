"""The gallery's notebook runs from top to bottom, and shows matches, why and queries without internals."""

from __future__ import annotations

import ast
import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

NOTEBOOK = Path(__file__).parents[2] / "examples" / "gallery.ipynb"
INTERNAL = ("nodes", "buckets", "touched", "aged", "groups")


def shown(cells: list[dict[str, Any]]) -> list[str]:
    """What each code cell prints, and the HTML of its last expression, as a notebook shows it."""
    space: dict[str, Any] = {"__name__": "notebook"}
    found = []
    for cell in cells:
        out, tree = io.StringIO(), ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        with redirect_stdout(out):
            exec(compile(tree, str(NOTEBOOK), "exec"), space)
            value = None if last is None else eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), space)
        found.append(out.getvalue() + (value._repr_html_() if value is not None else ""))
    return found


def test_every_cell_runs_and_shows_what_it_says() -> None:
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] for cell in cells)  # what is kept here is what the test has run
    listed, automaton, matches, match, why, compared, mistake, running, live, other = shown(cells)
    assert len(listed.splitlines()) > 12 and "fraud" in listed
    for html in (automaton, matches, match, why, running, live, other):
        ElementTree.fromstring(f"<div>{html}</div>")
        assert not [word for word in INTERNAL if f"<th>{word}</th>" in html]
    assert "<svg" in automaton and "<svg" in matches and "<svg" in live and "<svg" in other
    assert "<th>?" in match and "background:" in why
    assert "gained" in compared
    assert "hint: put A into SEQ" in mistake and "^^^^^^^^" in mistake and "Traceback" not in mistake
