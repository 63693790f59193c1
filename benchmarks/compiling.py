"""What engine/kernels/compiling wins: `python -m benchmarks.compiling [ROUNDS]`.

CPU time of one process, in turns. First five kernels of different kinds, nothing cached: as this package has Numba
compile (parts.py and quicker.py), without what quicker.py remembers, and in Numba's own way, as under another version.
A first run from a clone compiles, and so does who makes an archive for a wheel. Then a first match with compiled
kernels: as functions are made ready here, when they are needed (later.py), and all when their modules are imported.
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

from benchmarks.start import first_match, seconds

ROUNDS: Final = 3
MORE: Final = 4
"""Times as many first matches: they are soon done, and differ by little."""
KERNELS: Final = (
    "sequence.collect.collect",
    "output.paths.choose",
    "output.texts.plain_texts",
    "terms.table.add_text",
    "flow.joining.join",
)
WAYS: Final = ("as here", "nothing remembered", "Numba's own way")
AT_ONCE: Final = """
from oxiseq.engine.kernels.compiling import options
own = options._widened
def widened(dispatcher):
    made = own(dispatcher)
    made.py_func  # asked for anything it makes all
    return made
options._widened = widened
"""
MATCHES: Final = {"functions when needed": "", "functions at once": AT_ONCE}


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
    for way, each in zip(WAYS, zip(*found, strict=True), strict=True):
        print(f"five kernels, {way:22} {median(each):6.2f} s of CPU, least {min(each):6.2f}")
    matches = [[seconds(code + first_match("spaseq"))[0] for code in MATCHES.values()] for _ in range(MORE * rounds)]
    for way, each in zip(MATCHES, zip(*matches, strict=True), strict=True):
        print(f"a first match, {way:21} {median(each):6.3f} s of CPU, least {min(each):6.3f}")


if __name__ == "__main__":
    main(sys.argv[1:])
