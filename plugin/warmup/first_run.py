"""A first run: kernels that are not compiled yet are announced, and compiled by two processes at once.

In the flow: whoever is about to run a query calls `prepare`. Numba compiles a kernel when it is first called and
keeps the result on disk; those that a run needs last (`AHEAD`) a second process compiles meanwhile. Where the package
brings them compiled (kernels/archive.py) there is nothing to do.

Compiling the kernels ahead of the first query.

Numba compiles a kernel when it is first called and keeps the result on disk. `warm_up` compiles each of them for the
types that it is called with, in two processes; what the package brings compiled is not compiled again.
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
from time import monotonic, perf_counter, sleep
from typing import Any, Final, cast

import llvmlite
import llvmlite.binding
import numba
import numpy as np

import oxiseq.engine
from oxiseq.engine.events.write import replacing
from oxiseq.engine.kernels import ahead, archive
from oxiseq.engine.kernels.ahead import compile_all
from oxiseq.engine.kernels.compiling.as_python import AS_PYTHON
from oxiseq.engine.kernels.compiling.options import PLAIN, before_compiling
from oxiseq.engine.kernels.matching import match
from oxiseq.engine.kernels.sequence import advance
from oxiseq.engine.kernels.signatures import kernel_of, names

# --- first_run -------------------------------------------------------------------------------------------

NOTE: Final = (
    "first run, the kernels are compiled now and cached on disk "
    f"({'a minute' if PLAIN else '10 to 20 seconds'} on two free cores; `oxiseq warmup` does it ahead)"
)
MORE: Final = "kernels that this query needs are compiled now and cached on disk (`oxiseq warmup` compiles all of them)"
"""The same where some have been compiled."""
AHEAD: Final = (
    "sequence.advance.advance",
    "sequence.advance.measure",
    "sequence.collect.collect",
    "output.paths.visible",
    "output.paths.resolve",
    "output.paths.count_products",
    "output.paths.choose",
)
"""In the order in which they are compiled. First come those that take longest and that nobody waits for before reading
and matching are compiled too."""
_LOG: Final = logging.getLogger("oxiseq")
_SOURCES: Final = tuple(map(Path, oxiseq.engine.__path__))
"""Where the kernels are."""
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
    if not all(map(ahead.is_compiled, new)):
        tell(_note(new))


def is_compiled() -> bool:
    """Whether the two great kernels are compiled."""
    return all(map(ahead.is_compiled, (advance.advance, match.match_events)))


def compile_ahead() -> None:
    """Let a second process compile those of `AHEAD` that are not.

    The first caller of each one waits for it. If that process fails or takes too long, or there is no second
    processor, they are compiled here, when they are called. It never outlives this one.
    """
    missing = [name for name in AHEAD if not ahead.is_compiled(kernel_of(name)[0])]
    process = start(missing)
    if process is None:
        return
    atexit.register(end, process)
    deadline = monotonic() + _PATIENCE
    for name in missing:
        kernel, _ = kernel_of(name)
        before_compiling(kernel, partial(_await, process, kernel, deadline))


def start(names: Iterable[str]) -> Popen[bytes] | None:
    """A process that compiles kernels, None where it would win nothing: there are none, or no second processor."""
    wanted = tuple(names)
    if not wanted or (os.cpu_count() or 1) == 1:
        return None
    command = [sys.executable, "-P", "-m", ahead.__name__, *wanted]
    try:
        return Popen(command, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL)
    except OSError:
        return None


def end(process: Popen[bytes]) -> None:
    """Of that process, done or not."""
    process.kill()
    process.communicate()


def is_warm() -> bool:
    """Whether all kernels, as they are now, have come compiled, or a `warm_up` has compiled them for this processor."""
    brought = archive.shipped()
    if AS_PYTHON or (brought is not None and brought.sources == of_sources()):
        return True
    try:
        return _warm().read_text() == _of_kernels()
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
    return "\n".join([of_sources(), *versions, str(checked), sys.version, name, features])


def of_sources() -> str:
    """A digest of the engine's modules, whose kernels name constants and dtypes of any of them."""
    digest = sha256()
    for folder in _SOURCES:
        found = [os.path.join(where, name) for where, _, names in os.walk(folder) for name in names]
        for path in sorted((each for each in found if each.endswith(".py")), key=lambda each: each.split(os.sep)):
            with open(path, "rb") as file:
                digest.update(file.read())
    return digest.hexdigest()


def _note(kernels: Iterable[Any]) -> str:
    """The note for kernels that are not compiled: it is a first run if no large kernel is."""
    great = [*kernels, advance.advance, match.match_events]
    return MORE if any(map(ahead.is_compiled, great)) else NOTE


def _await(process: Popen[bytes], kernel: Any, deadline: float) -> None:
    while process.poll() is None and not ahead.is_compiled(kernel):
        if monotonic() >= deadline:
            end(process)
        sleep(0.02)


# --- warmup ----------------------------------------------------------------------------------------------


def warm_up(tell: Callable[[int, int], object] = lambda done, count: None) -> float:
    """Compile every kernel that is not compiled yet; returns the seconds that it took.

    `tell` is called before each kernel: how many are done, and how many there are. Another process begins with the last
    one; each finds what the other has compiled.
    """
    begun = perf_counter()
    every = names()
    other = start(reversed(every))
    compile_all(every, lambda name: tell(every.index(name), len(every)))
    if other is not None:
        end(other)
    note_warm()
    return perf_counter() - begun
