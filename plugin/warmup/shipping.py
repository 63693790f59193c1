"""`python -m oxiseq.warmup.shipping CHECKOUT`: make what a wheel of a checkout brings along, an archive of compiled
kernels and the tables of the parsers.

It takes a minute on two free cores, less where the archive is there already: kernels that are the same are taken over.
The code is for the processors of the archive's name, not for the one at hand.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

from oxiseq.engine.kernels import archive
from oxiseq.engine.kernels.signatures import kernel_of, names
from oxiseq.grammar.lalr import ship
from oxiseq.warmup.first_run import of_sources


def make(folder: Path) -> Path:
    """Make the archive for this Python, Numba, system and kind of processor in a folder; its file."""
    path = folder / archive.file_name()
    sources = of_sources()  # before: what is edited meanwhile is not what was compiled
    with TemporaryDirectory() as folder_of_numba:
        os.environ |= {  # of the processes that compile: Numba reads it once, when it is imported
            "NUMBA_CPU_NAME": archive.processor(),
            "NUMBA_CPU_FEATURES": "",
            "NUMBA_CACHE_DIR": folder_of_numba,
            archive.NATIVE: "1",
        }
        with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as processes:
            compiled = processes.map(partial(_compiled, path), names())
            made = {key: (fingerprint, data) for key, fingerprint, data in compiled}
    archive.write(path, sources, made)
    return path


def _compiled(before: Path, name: str) -> tuple[str, str, bytes]:
    kernel, signature = kernel_of(name)
    known, (key, fingerprint) = _archive(before), kernel._cache.key(signature)
    if known is not None and (data := known.find(key, fingerprint)) is not None:
        return key, fingerprint(), data
    kernel.compile(signature)
    packed: tuple[str, str, bytes] = kernel._cache.packed(kernel.overloads[signature], signature)
    return packed


@cache
def _archive(path: Path) -> archive.Archive | None:
    """What was made before, None if it cannot be read."""
    try:
        return archive.Archive(path)
    except (OSError, ValueError, LookupError):
        return None


if __name__ == "__main__":
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / "engine" / "kernels").is_dir():
        sys.exit("usage: python -m oxiseq.warmup.shipping CHECKOUT")
    root = Path(sys.argv[1])
    for file in (make(root / "engine" / "kernels" / archive.FOLDER.name), *ship(root / "grammar" / "parsing")):
        print(f"{file.name}: {file.stat().st_size:,} bytes")
