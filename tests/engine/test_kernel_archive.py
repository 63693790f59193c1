"""Compiled kernels that come with the package are taken where they fit, and only there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import llvmlite.binding
import pytest

from oxiseq.engine.kernels import archive, resident
from oxiseq.engine.kernels.compiling import fingerprint
from oxiseq.engine.kernels.compiling.fingerprint import KernelCache
from oxiseq.engine.kernels.compiling.options import kernel
from oxiseq.engine.kernels.signatures import kernel_of
from oxiseq.warmup import shipping
from oxiseq.warmup.first_run import of_sources

NAME = "memory.nesting.json_depth"


def twice(x: int) -> int:
    """A kernel of its own for each test."""
    return 2 * x


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the archive is looked for; what is compiled here goes elsewhere."""
    monkeypatch.setattr(archive, "FOLDER", tmp_path)
    monkeypatch.delenv(archive.NATIVE, raising=False)
    monkeypatch.setattr(KernelCache, "_load_overload", lambda self, signature, target: None)
    monkeypatch.setattr(KernelCache, "_save_overload", lambda self, signature, data: None)
    archive.shipped.cache_clear()
    yield tmp_path
    archive.shipped.cache_clear()


def fresh() -> Any:
    """The kernel as a new process has it."""
    return kernel(twice)


def packed() -> tuple[str, str, bytes]:
    """It, compiled."""
    made = fresh()
    made(1)
    found: tuple[str, str, bytes] = made._cache.packed(made.overloads[made.signatures[0]], made.signatures[0])
    return found


def taken() -> bool:
    """Whether a new process takes it from the archive."""
    archive.shipped.cache_clear()
    made = fresh()
    assert made(21) == 42
    return bool(made.stats.cache_hits)


def test_it_is_taken_from_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not taken()
    key, stamp, data = packed()
    archive.write(folder / archive.file_name(), "sources", {key: (stamp, data)})
    assert taken()
    monkeypatch.setenv(archive.NATIVE, "1")
    assert not taken()


def resident_code() -> int:
    """KiB of LLVM's code in this process's memory."""
    starts = tuple(f"{start:x}-" for start, _ in resident.code())
    _, *mappings = re.split(r"^(?=[0-9a-f]+-)", Path("/proc/self/smaps").read_text(), flags=re.MULTILINE)
    return sum(int(each.split("\nRss:")[1].split()[0]) for each in mappings if each.startswith(starts))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it stays")
def test_llvm_does_not_stay_in_memory_when_it_has_loaded_a_kernel(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, stamp, data = packed()
    archive.write(folder / archive.file_name(), "sources", {key: (stamp, data)})
    with monkeypatch.context() as scope:
        scope.setattr(fingerprint, "give_back", lambda: None)
        assert taken()
    needed = resident_code()
    assert taken()
    assert resident_code() < needed / 4


def test_not_where_the_kernel_is_another_one(folder: Path) -> None:
    key, stamp, data = packed()
    archive.write(folder / archive.file_name(), "sources", {key: (stamp[::-1], data)})
    assert not taken()


def test_not_where_the_processor_lacks_an_instruction(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, stamp, data = packed()
    archive.write(folder / archive.file_name(), "sources", {key: (stamp, data)})
    lacking = dict.fromkeys(llvmlite.binding.get_host_cpu_features(), False)
    monkeypatch.setattr(archive.llvmlite.binding, "get_host_cpu_features", lambda: lacking)
    assert taken() is (archive.processor() == "generic")


@pytest.mark.parametrize("content", [b"", b"something else", b"oxiseq kernels 1\n" + (9).to_bytes(8, "little") + b"{"])
def test_a_damaged_file_is_none(folder: Path, content: bytes) -> None:
    (folder / archive.file_name()).write_bytes(content)
    assert not taken()


def test_a_damaged_entry_is_none(folder: Path) -> None:
    key, stamp, data = packed()
    file = folder / archive.file_name()
    archive.write(file, "sources", {key: (stamp, data)})
    whole = file.read_bytes()
    for cut in (whole[:-20], whole[:-1] + bytes([whole[-1] ^ 1]) + b"", whole[:-40] + bytes(40)):
        file.write_bytes(cut)
        assert not taken()


def test_the_name_says_what_it_was_made_for() -> None:
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}-numba"
    assert archive.file_name().startswith(python) and archive.file_name().endswith(".bin")


def made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The archive of one kernel."""
    monkeypatch.setattr(shipping, "names", lambda: [NAME])
    with monkeypatch.context() as scope:
        for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_CACHE_DIR", archive.NATIVE):
            scope.setenv(name, "")  # put back afterwards
        return shipping.make(folder)


@pytest.mark.slow
def test_an_archive_is_made_and_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = made(tmp_path, monkeypatch)
    code = f"""
import numpy as np
from oxiseq.engine.kernels import archive
archive.FOLDER = archive.Path({str(tmp_path)!r})
from oxiseq.engine.kernels.signatures import kernel_of
kernel, signature = kernel_of({NAME!r})
kernel.compile(signature)
assert kernel.stats.cache_hits and not kernel.stats.cache_misses
"""
    assert file.stat().st_size > 1000
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "none")}
    environment.pop(archive.NATIVE, None)
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300, env=environment)


@pytest.mark.parametrize("same", [True, False])
def test_kernels_that_are_the_same_are_taken_over(same: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, signature = kernel_of(NAME)
    key, fingerprint = found._cache.key(signature)
    of = fingerprint() if same else "of other sources"
    archive.write(tmp_path / archive.file_name(), "others", {key: (of, b"made before"), "gone": (of, b"")})
    renewed = archive.Archive(made(tmp_path, monkeypatch))
    assert (renewed.find(key, fingerprint) == b"made before") is same
    assert not renewed.has("gone", lambda: of) and renewed.sources == of_sources()
