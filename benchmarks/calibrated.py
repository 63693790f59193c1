"""Run a module on a clock that goes with the machine: `python benchmarks/calibrated.py MODULE [ARGUMENT ...]`.

In the flow: `benchmarks.against` → **this program**, by the Python and in the folder of either commit → a benchmark
that knows nothing of it. Processors of a cloud have two speeds and more, each for minutes, and neighbours that fill
their caches: seconds of CPU time do not compare. Here `time.process_time` and `time.thread_time` count work instead:
right before and after what a benchmark times, the same process times a fixed piece of work, and the seconds between are
divided by what that takes, in units of what it takes on a fast machine. It is left out of what is counted.

Readings that follow each other within 50 ms are not calibrated one by one: that would disturb what is short.
"""

from __future__ import annotations

import runpy
import sys
import threading
import time
from collections.abc import Callable
from statistics import median
from typing import Any, Final

import numpy as np

REFERENCE: Final = 0.001
"""Seconds that the fixed work takes on a fast machine: readings are about seconds."""
_EVERY: Final = 0.05
"""Seconds of CPU time for which a calibration holds."""
_TRIES: Final = 5
"""Times that the work is done for a calibration: the median counts, since one that is interrupted takes longer."""
_STEPS: Final = 8_000
_PLACES: Final = 30_000
_NUMBERS: Final = np.arange(1 << 16, dtype=np.int64)
"""Half a megabyte: what belongs to a core holds it. Main memory is shared with whatever else runs, and changes from one
millisecond to the next."""
_ORDER: Final = np.random.default_rng(1).integers(0, len(_NUMBERS), _PLACES)


def work() -> float:
    """The fixed work: Python, and reads all over an array; seconds of CPU time."""
    begun = _process_time()
    total, table = 0, dict[int, int]()
    for step in range(_STEPS):
        total += step & 7
        table[step & 255] = total
    for _ in range(8):
        total += int(_NUMBERS[_ORDER].sum())
    return _process_time() - begun


_process_time: Final = time.process_time


def calibrated() -> float:
    """How many times as slow as the reference this process is now."""
    return median(work() for _ in range(_TRIES)) / REFERENCE


class Clock:
    """Seconds of a clock, each divided by how slow the process is at that time. They never go back."""

    def __init__(self, own: Callable[[], float], calibrate: Callable[[], float] = calibrated) -> None:
        self._own, self._calibrate = own, calibrate
        self._slow = calibrate()
        self._counted = 0.0
        self._read = self._known = own()

    def __call__(self) -> float:
        """The reading; calibrates if it has not for a while."""
        now = self._own()
        slow = self._slow
        if now - self._known >= _EVERY:
            self._slow = self._calibrate()
            slow = (slow + self._slow) / 2
            self._counted += (now - self._read) / slow
            self._read = self._known = self._own()
        else:
            self._counted += (now - self._read) / slow
            self._read = now
        return self._counted


class _OfThread(threading.local):
    """A clock for each thread."""

    def __init__(self) -> None:
        self.clock = Clock(_thread_time)


_thread_time: Final = time.thread_time


def install() -> None:
    """Let modules that are imported from now on read these clocks."""
    clock, threads = Clock(_process_time), _OfThread()
    names: Any = time
    names.process_time = clock
    names.process_time_ns = lambda: int(clock() * 1e9)
    names.thread_time = lambda: threads.clock()
    names.thread_time_ns = lambda: int(threads.clock() * 1e9)


def main() -> None:
    """The module as `python -m` runs it, in the current folder."""
    sys.path[0] = ""
    module, sys.argv[:] = sys.argv[1], sys.argv[1:]
    install()
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
