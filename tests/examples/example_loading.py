"""Load an example's modules: each folder has its own `make_events` and `run`."""

from __future__ import annotations

import ast
import io
import json
import sys
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(folder: str, name: str = "run") -> ModuleType:
    """The module examples/`folder`/`name`.py, loaded afresh as if the folder were the working directory."""
    sys.path.insert(0, str(EXAMPLES / folder))
    _forget()  # a notebook may have imported another example's
    try:
        return import_module(name)
    finally:
        sys.path.pop(0)
        _forget()


def _forget() -> None:
    for each in ("make_events", "run"):
        sys.modules.pop(each, None)


def cells_run(notebook: Path) -> list[tuple[str, Any]]:
    """What each code cell prints, and the value of its last expression. The file keeps no outputs."""
    cells = [cell for cell in json.loads(notebook.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] for cell in cells)  # what is kept here is what the test has run
    space: dict[str, Any] = {"__name__": "notebook"}
    found = []
    for cell in cells:
        out, tree = io.StringIO(), ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        with redirect_stdout(out):
            exec(compile(tree, str(notebook), "exec"), space)
            value = None if last is None else eval(compile(ast.Expression(last.value), str(notebook), "eval"), space)
        found.append((out.getvalue(), value))
    return found
