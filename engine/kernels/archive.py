"""Compiled kernels that travel with the package: one file for each Python, Numba, system and processor.

In the flow: `python -m oxiseq.warmup.shipping` compiles all kernels → **a file** → `KernelCache` asks it first. An
entry is taken while the fingerprint of its kernel is the one that it was compiled from; where there is no such entry,
or no file for this machine, kernels are compiled here, as they are where OXISEQ_NATIVE is set.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import llvmlite.binding
import numba

from oxiseq.engine.zstd import compress, decompress

FOLDER: Final = Path(__file__).parent / "compiled"
NATIVE: Final = "OXISEQ_NATIVE"
"""The environment variable that, where it is set, has kernels compiled for the processor at hand."""
_MAGIC: Final = b"oxiseq kernels 1\n"
_WORD: Final = 8
"""Bytes of the number that says how long the table of contents is."""
_LEVELS: Final = {"x86_64": "x86-64-v2", "amd64": "x86-64-v2"}
"""Instruction sets that an archive is compiled for, by machine; the plain ones elsewhere."""
_NEEDED: Final = {"x86-64-v2": ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")}
Entry = tuple[str, int, int, int, int]
"""The fingerprint, where the entry begins, its size compressed and not, and a checksum of what is compressed."""


def processor() -> str:
    """The processor that this machine's archive is compiled for, as LLVM calls it."""
    return _LEVELS.get(platform.machine().lower(), "generic")


def file_name() -> str:
    """The name of the archive that fits this process."""
    machine = platform.machine().lower()
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    return f"{python}-numba{numba.__version__}-{platform.system().lower()}-{_LEVELS.get(machine, machine)}.bin"


class Archive:
    """A file of compiled kernels. Raises OSError where it cannot be read, ValueError, LookupError where it is none."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise ValueError(f"{path.name} is no archive of kernels")
            size = int.from_bytes(file.read(_WORD), "little")
            contents = json.loads(file.read(size))
        self._first = len(_MAGIC) + _WORD + size
        self.sources: str = contents["sources"]
        """The digest of the sources that it was compiled from, as its maker has it."""
        self._entries: Mapping[str, Entry] = contents["kernels"]

    def has(self, key: str, fingerprint: Callable[[], str]) -> bool:
        """Whether something was written under the key that has this fingerprint; it is not read."""
        return key in self._entries and self._entries[key][0] == fingerprint()

    def find(self, key: str, fingerprint: Callable[[], str]) -> bytes | None:
        """What was written under the key, None unless it has this fingerprint and is whole."""
        if not self.has(key, fingerprint):
            return None
        _, at, packed, size, checksum = self._entries[key]
        with self._path.open("rb") as file:
            file.seek(self._first + at)
            found = file.read(packed)
        return decompress(found, size) if crc32(found) == checksum else None


def write(path: Path, sources: str, kernels: Mapping[str, tuple[str, bytes]]) -> None:
    """Make an archive of fingerprints and compiled kernels by key. It appears when it is whole."""
    entries: dict[str, Entry] = {}
    parts, at = [], 0
    for key, (fingerprint, data) in sorted(kernels.items()):
        parts.append(compress(data, level=19))
        entries[key] = fingerprint, at, len(parts[-1]), len(data), crc32(parts[-1])
        at += len(parts[-1])
    table = json.dumps({"sources": sources, "kernels": entries}).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".part").write_bytes(b"".join([_MAGIC, len(table).to_bytes(_WORD, "little"), table, *parts]))
    path.with_suffix(".part").replace(path)


def key_of(function: Any, signature: object) -> str:
    """The name of a kernel for these types of arguments."""
    return f"{function.__module__}.{function.__qualname__}{signature}"


@cache
def shipped() -> Archive | None:
    """The archive for this process, if there is one."""
    checked: Any = getattr(numba.config, "BOUNDSCHECK", None)
    if os.environ.get(NATIVE) or checked:
        return None
    features = llvmlite.binding.get_host_cpu_features()
    if not all(features.get(name, False) for name in _NEEDED.get(processor(), ())):
        return None
    try:
        return Archive(FOLDER / file_name())
    except (OSError, ValueError, LookupError):
        return None
