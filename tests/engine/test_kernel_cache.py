"""A compiled kernel is taken from the cache while all that it was made of is as it was, wherever that stands."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numba.core.registry import CPUDispatcher

from oxiseq.engine import kernels
from oxiseq.engine.kernels.compiling.fingerprint import fingerprint
from oxiseq.engine.kernels.compiling.later import Later, ready

KERNEL = """
from typing import NamedTuple
import {callee} as callee
from {callee} import twice
from oxiseq.engine.kernels.compiling.options import inner, kernel

class Pair(NamedTuple):
    {first}: object
    {second}: object

@inner
def between(x):
    return twice(x) + callee.MORE

@kernel
def of_a_number(x):
    return between(x)

@kernel
def of_a_pair(pair):
    return pair.a[0] - pair.b[0]
"""
CALLEE = """
import numpy as np
from oxiseq.engine.kernels.compiling.options import inner
MORE = {more}
TYPE = np.dtype([("x", np.int64)])
UNUSED = {unused}

@inner
def twice(x):
    return {factor} * x
"""


class Sources:
    """Two modules, of which one calls what stands in the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.values = {"more": "1", "factor": "2", "unused": "0", "first": "a", "second": "b"}
        self.values["callee"] = "cached_callee"

    def load(self, **changed: str) -> ModuleType:
        """The kernels' module as a new process would find it."""
        self.values |= changed
        for name, text in ((self.values["callee"], CALLEE), ("cached_kernel", KERNEL)):
            (self.folder / f"{name}.py").write_text(text.format(**self.values))
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module("cached_kernel")


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sources:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # the files change within a second
    return Sources(tmp_path)


def call(module: ModuleType, expected: int) -> bool:
    """Whether the kernel came from the cache."""
    assert module.of_a_number(5) == expected
    return bool(module.of_a_number.stats.cache_hits)


def test_a_kernel_is_compiled_again_when_what_it_uses_changes(sources: Sources) -> None:
    assert not call(sources.load(), 11)
    assert call(sources.load(), 11)
    assert not call(sources.load(factor="3"), 16)  # an inlined callee of a callee, in another module
    assert not call(sources.load(more="2"), 17)  # a constant that is read as an attribute of its module
    assert call(sources.load(unused="9"), 17)
    assert call(sources.load(), 17)
    files = {path.suffix for path in (sources.folder / "__pycache__").iterdir() if "of_a_number" in path.name}
    assert files == {".nbi", ".nbc"}  # one of each: what is new takes the place of what was


def test_a_kernel_is_compiled_again_when_what_it_calls_has_moved(sources: Sources) -> None:
    """What is kept of it names the module, which may be there no more."""
    assert not call(sources.load(), 11)
    (sources.folder / "cached_callee.py").unlink()
    sys.modules.pop("cached_callee")
    assert not call(sources.load(callee="cached_elsewhere"), 11)
    assert call(sources.load(), 11)


def test_a_kernel_is_compiled_again_when_fields_change_places(sources: Sources) -> None:
    one, two = np.array([7]), np.array([2])
    module = sources.load()
    assert module.of_a_pair(module.Pair(one, two)) == 5
    module = sources.load(first="b", second="a")
    assert module.of_a_pair(module.Pair(one, two)) == -5
    assert not module.of_a_pair.stats.cache_hits


def test_every_kernel_has_a_fingerprint_and_files_of_its_own() -> None:
    names = [module.name for module in pkgutil.walk_packages(kernels.__path__, f"{kernels.__name__}.")]
    modules = [importlib.import_module(name) for name in names]
    found = {
        value.py_func: value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, CPUDispatcher) and type(value) is not Later and ready(value).__module__ == module.__name__
    }
    assert len(found) > 100
    assert len({fingerprint(function) for function in found}) == len(found)
    assert len({(each._cache.cache_path, each._cache._impl.filename_base) for each in found.values()}) == len(found)
