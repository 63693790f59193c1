"""Patterns have unit tests: a file says events, a query and the matches that it must find.

    *.oxitest.toml ─▶ cases (words.py, cases.py) ─▶ run.py: answers, compared and reported
                      `oxiseq test` · pytest (pytest_plugin.py) · `run_file` from Python

A case runs on a virtual clock: time is what the file says, so that absence and timeouts are tested at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oxiseq.testing.cases import Case, load_cases
    from oxiseq.testing.run import Result, run_case, run_file

_HOMES = {"Case": "cases", "Result": "run", "load_cases": "cases", "run_case": "run", "run_file": "run"}


def __getattr__(name: str) -> Any:
    """Imported when first used: pytest loads this package in every run, of whatever tests."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


__all__ = ["Case", "Result", "load_cases", "run_case", "run_file"]
