"""What it takes to compile kernels: `python -m benchmarks.compiling [ROUNDS]`.

CPU time of one process for five kernels of different kinds, nothing cached, in turns: as this package has Numba compile
(engine/kernels/compiling/parts.py and quicker.py), without what quicker.py remembers, and in Numba's own way, as under
another version. A first run from a clone compiles, and so does who makes an archive for a wheel.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import Final

import numba

ROUNDS: Final = 3
KERNELS: Final = (
    "sequence.collect.collect",
    "output.paths.choose",
    "output.texts.plain_texts",
    "terms.table.add_text",
    "flow.joining.join",
)
WAYS: Final = ("as here", "nothing remembered", "Numba's own way")


def taken(way: str) -> float:
    """Seconds of CPU in this process, which has imported nothing of the engine before."""
    if way == WAYS[2]:
        numba.__version__ = "0.0.0"
    else:
        from oxiseq.engine.kernels.compiling import parts  # noqa: PLC0415  not under another version

        if way == WAYS[1]:
            parts.quicker = contextlib.nullcontext
    from oxiseq.engine.kernels.signatures import kernel_of  # noqa: PLC0415  it reads the version

    found = [kernel_of(name) for name in KERNELS]
    begun = process_time()
    for kernel, signature in found:
        kernel.compile(signature)
    return process_time() - begun


def asked(way: str) -> float:
    """The same of a process of its own."""
    with TemporaryDirectory() as cache:
        environment = {**os.environ, "OXISEQ_NATIVE": "1", "NUMBA_CACHE_DIR": cache}
        command = [sys.executable, "-m", "benchmarks.compiling", "--way", way]
        return float(subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE).stdout)


def main(arguments: list[str]) -> None:
    """Print the medians."""
    if arguments[:1] == ["--way"]:
        print(taken(arguments[1]))
        return
    rounds = int(arguments[0]) if arguments else ROUNDS
    found = [[asked(way) for way in WAYS] for _ in range(rounds)]
    for way, seconds in zip(WAYS, zip(*found, strict=True), strict=True):
        print(f"{way:20} {median(seconds):6.2f} s of CPU")


if __name__ == "__main__":
    main(sys.argv[1:])
