"""Kernels run as plain Python, where each access is checked, and answer as the compiled ones."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from as_python_checks import numbers_computed

TESTS: Final = Path(__file__).parents[1]
CORPUS: Final = (
    "engine/as_python_checks.py",
    "test_corpus.py",
    "test_rsp_corpus.py",
    "ceql/test_ceql_end_to_end.py::test_corpus",
    "intervals/test_ep_corpus.py",
)
_RUN: Final = """
import sys
import pytest
from oxiseq.engine.kernels.compiling.as_python import AS_PYTHON
assert AS_PYTHON
raise SystemExit(pytest.main(["-q", "-n", "0", "-p", "no:cacheprovider", *sys.argv[1:]]))
"""
_COMPUTED: Final = "from as_python_checks import numbers_computed; print(numbers_computed())"
_DECORATORS: Final = {"inner", "kernel", "unlocked", "allocating"}


def as_python(code: str, *args: str) -> str:
    """What a program prints that runs kernels as Python, from the folder of the tests."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(TESTS / "engine")}
    result = subprocess.run(
        [sys.executable, "-c", code, *args], cwd=TESTS, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-5000:]
    return result.stdout


@pytest.mark.slow
def test_the_corpus_is_answered() -> None:
    as_python(_RUN, *CORPUS)


def test_numbers_go_round_as_compiled() -> None:
    assert ast.literal_eval(as_python(_COMPUTED)) == numbers_computed()


def _other_numbers(source: str) -> Iterator[str]:
    """Where kernels make integers of 64 bits by NumPy's types, which in Python refuse -1 instead of going round."""
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef) and _DECORATORS & set(map(ast.unparse, function.decorator_list)):
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and ast.unparse(node.func) in ("np.int64", "np.uint64"):
                    yield f"line {node.lineno}: {ast.unparse(node)}"


def test_kernels_make_integers_that_go_round_in_python_too() -> None:
    folder = TESTS.parent / "engine" / "kernels"
    found = [
        f"{p.relative_to(folder)}, {each}"
        for p in sorted(folder.rglob("*.py"))
        for each in _other_numbers(p.read_text())
    ]
    assert not found, "\n".join(found)
    assert [*_other_numbers("@inner\ndef f(x):\n    return np.uint64(x)\n")]
