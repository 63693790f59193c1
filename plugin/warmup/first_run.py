"""A first run: kernels that are not compiled yet are announced, and compiled by two processes at once.

In the flow: whoever is about to run a query calls `prepare`. Numba compiles a kernel when it is first called and
keeps the result on disk; those that a run needs last (`ahead.KERNELS`) a second process compiles meanwhile.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from threading import Event
from time import monotonic, sleep
from typing import Any, Final, cast

import llvmlite
import llvmlite.binding
import numba
import numpy as np

import oxiseq.engine
from oxiseq.engine.events.write import replacing
from oxiseq.engine.kernels import ahead
from oxiseq.engine.kernels.compiling.as_python import AS_PYTHON
from oxiseq.engine.kernels.compiling.options import PLAIN, before_compiling
from oxiseq.engine.kernels.matching import match
from oxiseq.engine.kernels.sequence import advance

NOTE: Final = (
    "first run, the kernels are compiled now and cached on disk "
    f"({'a minute' if PLAIN else '15 to 30 seconds'} on two free cores; `oxiseq warmup` does it ahead)"
)
MORE: Final = "kernels that this query needs are compiled now and cached on disk (`oxiseq warmup` compiles all of them)"
"""The same where some have been compiled."""
_LOG: Final = logging.getLogger("oxiseq")
_SOURCES: Final = (*map(Path, oxiseq.engine.__path__), Path(__file__).parent)
"""Where the kernels are, and what is compiled ahead."""
_PATIENCE: Final = 120.0
"""Seconds that the second process may take; it takes a tenth."""
_prepared: Final = Event()
_announced: Final[set[Any]] = set()


def prepare(tell: Callable[[str], object] = _LOG.warning) -> None:
    """If SPAseq's kernels have to be compiled: say so in one line, and let a second process compile some of them.

    Does nothing when it is called again.
    """
    if not _prepared.is_set():
        _prepared.set()
        if not is_compiled():
            tell(_note(()))
        compile_ahead()


def announce(kernels: Iterable[Any], tell: Callable[[str], object] = _LOG.warning) -> None:
    """If another language's great kernels have to be compiled: say so in one line, once. That takes no longer alone."""
    new = [kernel for kernel in kernels if kernel not in _announced]
    _announced.update(new)
    if not all(_on_disk(kernel) for kernel in new):
        tell(_note(new))


def is_compiled() -> bool:
    """Whether the two great kernels lie compiled on disk. A guess before they are called: Numba itself decides."""
    return all(_on_disk(kernel) for kernel in (advance.advance, match.match_events))


def compile_ahead() -> None:
    """Let a second process compile those of `ahead.KERNELS` that are not on disk.

    The first caller of each one waits for it. If that process fails or takes too long, or there is no second
    processor, they are compiled here, when they are called. It never outlives this one.
    """
    missing = [kernel for kernel in ahead.KERNELS if not _on_disk(kernel)]
    process = _start() if missing and (os.cpu_count() or 1) > 1 else None
    if process is None:
        return
    atexit.register(_end, process)
    deadline = monotonic() + _PATIENCE
    for kernel in missing:
        before_compiling(kernel, partial(_await, process, kernel, deadline))


def is_warm() -> bool:
    """Whether all kernels, as they are now, have been compiled for this processor by a `warm_up` and are on disk."""
    try:
        return AS_PYTHON or _warm().read_text() == _of_kernels()
    except OSError:
        return False


def note_warm() -> None:
    """They are."""
    if AS_PYTHON:
        return
    with suppress(OSError):
        file = _warm()
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as part:
            part.write_text(_of_kernels())


def _warm() -> Path:
    """Beside what Numba keeps: it goes with that."""
    return Path(cast(Any, advance.advance).stats.cache_path) / "oxiseq-warm"


def _of_kernels() -> str:
    """What compiled kernels depend on: the sources of all that they may use, the compiler and the processor."""
    name, features = llvmlite.binding.get_host_cpu_name(), llvmlite.binding.get_host_cpu_features().flatten()
    versions = [each.__version__ for each in (numba, llvmlite, np)]
    checked: Any = getattr(numba.config, "BOUNDSCHECK", None)
    return "\n".join([_of_sources(), *versions, str(checked), sys.version, name, features])


def _of_sources() -> str:
    """A digest of the engine's modules, whose kernels name constants and dtypes of any of them, and of this package."""
    digest = sha256()
    for folder in _SOURCES:
        for file in sorted(folder.rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def _on_disk(kernel: Any) -> bool:
    """Whether there is anything of a Numba dispatcher on disk, fresh or not: where its `KernelCache` writes it. As
    Python kernels need not be there."""
    return AS_PYTHON or Path(kernel._cache._cache_file._index_path).exists()


def _note(kernels: Iterable[Any]) -> str:
    """The note for kernels that are not on disk: it is a first run if no large kernel is."""
    great = [*kernels, advance.advance, match.match_events]
    return MORE if any(_on_disk(kernel) for kernel in great) else NOTE


def _start() -> Popen[bytes] | None:
    command = [sys.executable, "-P", "-m", ahead.__name__]
    try:
        return Popen(command, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL)
    except OSError:
        return None


def _await(process: Popen[bytes], kernel: Any, deadline: float) -> None:
    while process.poll() is None and not _on_disk(kernel):
        if monotonic() >= deadline:
            _end(process)
        sleep(0.02)


def _end(process: Popen[bytes]) -> None:
    process.kill()
    process.communicate()
