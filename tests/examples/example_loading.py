"""Load an example's modules: each folder has its own `make_events` and `run`."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(folder: str, name: str = "run") -> ModuleType:
    """The module examples/`folder`/`name`.py, loaded afresh as if the folder were the working directory."""
    sys.path.insert(0, str(EXAMPLES / folder))
    try:
        return import_module(name)
    finally:
        sys.path.pop(0)
        for each in ("make_events", "run"):
            sys.modules.pop(each, None)
