"""How kernels are compiled: each for one combination of types, which stands in a table."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import pytest
from numba.core.registry import CPUDispatcher

from oxiseq.engine import kernels
from oxiseq.engine.kernels.compiling.fingerprint import KernelCache, _named, _parts, _python_of
from oxiseq.engine.kernels.compiling.later import LaterKernel
from oxiseq.engine.kernels.signatures import kernel_of, names

LAYOUTS = Path(__file__).with_name("kernel_layouts.py")


def is_kernel(value: object) -> bool:
    """Whether Python calls it."""
    return isinstance(value, LaterKernel) or isinstance(vars(value).get("_cache"), KernelCache)


def all_kernels() -> dict[str, CPUDispatcher]:
    """The kernels that Python calls, by module and function."""
    found = {}
    for module in pkgutil.walk_packages(kernels.__path__, f"{kernels.__name__}."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, CPUDispatcher) and is_kernel(value):
                found[f"{value.py_func.__module__}.{value.py_func.__name__}"] = value
    return found


def test_the_table_has_all_kernels_and_no_other() -> None:
    found = all_kernels()
    assert sorted(found) == sorted(f"{kernels.__name__}.{name}" for name in names())
    for name in names():
        kernel, signature = kernel_of(name)
        assert found[f"{kernels.__name__}.{name}"] is kernel
        assert len(signature) == kernel.py_func.__code__.co_argcount


def test_no_kernel_calls_another_one_by_name() -> None:
    """Such a one could not be linked: what is kept of a compiled kernel has no code for that."""

    def called(value: object, seen: set[int]) -> list[str]:
        function = _python_of(value)
        if id(function) in seen or not isinstance(function, FunctionType):
            return []
        seen.add(id(function))
        inner = [each for part in _named(function) for each in called(part, seen)]
        return inner + [function.__name__ for _ in [0] if is_kernel(value)]

    for name, kernel in all_kernels().items():
        assert called(kernel, set()) == [kernel.py_func.__name__], name


def test_no_fingerprint_says_where_the_package_is() -> None:
    """What comes compiled was compiled elsewhere."""
    for name, kernel in all_kernels().items():
        assert [part for part in _parts(kernel.py_func, set()) if "<module" in part] == [], name


@pytest.mark.slow
def test_no_kernel_is_compiled_twice_for_different_arrays() -> None:
    """Each signature costs seconds of a first run."""
    result = subprocess.run([sys.executable, LAYOUTS], capture_output=True, text=True, timeout=900, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "{}\n"
