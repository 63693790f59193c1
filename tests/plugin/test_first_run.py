"""A first run: one line says that it compiles; the process that helps is awaited, and no harm when it fails."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from time import monotonic
from types import SimpleNamespace

import pytest

from oxiseq.engine.kernels import ahead, archive
from oxiseq.engine.kernels.signatures import kernel_of
from oxiseq.warmup import first_run


class Kernel:
    """Something to compile, compiled when a file is there."""

    def __init__(self, index: Path) -> None:
        self._cache = SimpleNamespace(has=lambda signature, target: index.exists())
        self.targetctx = None
        self.compiled: list[object] = []

    @staticmethod
    def py_func() -> None:
        """What would be compiled."""

    def compile(self, signature: object) -> None:
        self.compiled.append(signature)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """The only kernel that is compiled ahead."""
    made = Kernel(tmp_path / "kernel.nbi")
    monkeypatch.setattr(first_run, "AHEAD", ("made",))
    monkeypatch.setattr(first_run, "kernel_of", lambda name: (made, ()))
    monkeypatch.setattr(ahead, "signature_of", lambda kernel: ())
    return made


def started(monkeypatch: pytest.MonkeyPatch, code: str) -> list[subprocess.Popen[bytes]]:
    """Let the second process run `code`; the processes that were started."""
    processes = []

    def start(names: Sequence[str]) -> subprocess.Popen[bytes] | None:
        if not names:
            return None
        processes.append(subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE))
        return processes[-1]

    monkeypatch.setattr(first_run, "start", start)
    return processes


def test_a_process_that_fails_is_not_waited_for(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    processes = started(monkeypatch, "raise SystemExit(1)")
    first_run.compile_ahead()
    kernel.compile("first")
    kernel.compile("second")
    assert kernel.compiled == ["first", "second"]
    assert processes[0].returncode == 1


def test_patience_ends(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    processes = started(monkeypatch, "import time; time.sleep(600)")
    monkeypatch.setattr(first_run, "_PATIENCE", 0.3)
    begun = monotonic()
    first_run.compile_ahead()
    kernel.compile("here")
    assert 0.3 <= monotonic() - begun < 60
    assert kernel.compiled == ["here"]
    assert processes[0].returncode is not None


def test_the_kernel_is_waited_for_and_no_longer(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = tmp_path / "kernel.nbi"
    code = f"import time; time.sleep(0.5); open({str(index)!r}, 'w').close(); time.sleep(600)"
    processes = started(monkeypatch, code)
    begun = monotonic()
    first_run.compile_ahead()
    kernel.compile("cached on disk")
    assert 0.5 <= monotonic() - begun < 60
    processes[0].kill()
    processes[0].communicate()


def test_one_line_says_that_kernels_are_compiled(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    processes = started(monkeypatch, "")
    monkeypatch.setattr(first_run, "_prepared", Event())
    monkeypatch.setattr(first_run, "is_compiled", lambda: False)
    said: list[str] = []
    first_run.prepare(said.append)
    first_run.prepare(said.append)
    assert [note.count("\n") for note in said] == [0]
    assert len(processes) == 1
    processes[0].communicate()


@pytest.mark.parametrize("compiled", [False, True])
def test_a_first_run_is_one_without_any_great_kernel(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch, compiled: bool
) -> None:
    monkeypatch.setattr(ahead, "is_compiled", lambda asked: compiled and asked is not kernel)
    monkeypatch.setattr(first_run, "_announced", set())
    said: list[str] = []
    first_run.announce([kernel], said.append)
    first_run.announce([kernel], said.append)
    (note,) = said
    assert ("first run" in note) is not compiled
    assert "oxiseq warmup" in note


def test_no_process_when_all_is_compiled(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    processes = started(monkeypatch, "")
    monkeypatch.setattr(ahead, "is_compiled", lambda kernel: True)
    first_run.compile_ahead()
    assert processes == []


def test_the_process_ends_with_the_one_that_has_started_it(tmp_path: Path) -> None:
    """It would take many seconds to fill the empty cache."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), archive.NATIVE: "1"}
    command = [sys.executable, "-P", "-m", ahead.__name__, *first_run.AHEAD]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
    process.communicate(timeout=120)
    assert process.returncode == 1
    assert not list(tmp_path.rglob("*.nbi"))


def test_what_is_on_disk_is_what_the_cache_has_written() -> None:
    """Else each process that runs a query would start another one, and wait for it."""
    ahead.compile_all(first_run.AHEAD)
    assert all(ahead.is_compiled(kernel_of(name)[0]) for name in first_run.AHEAD)
