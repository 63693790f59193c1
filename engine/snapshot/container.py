"""A tree of arrays, numbers and texts ↔ bytes.

    magic, format, digest of the rest | length of the outline, outline as JSON | arrays, one after the other

The part behind the first bar is compressed. Nothing of it is ever executed: the outline is JSON, arrays are plain
memory. The digest finds damage, not forgery: whoever can write snapshots can make a run fail.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.lib.format import descr_to_dtype, dtype_to_descr
from numpy.typing import NDArray

from oxiseq.engine.errors import SnapshotError, SnapshotVersionError
from oxiseq.engine.terms.saved import State
from oxiseq.engine.zstd import compress, decompress

FORMAT: Final = 2
"""Changes with the meaning of what is saved."""
_MAGIC: Final = b"OXISEQ\0S"
_HEAD: Final = struct.Struct("<8sI16sQ")
"""Magic, format, digest, length before compression."""
_LENGTH: Final = struct.Struct("<Q")
_ALIGNED: Final = 16


def pack(state: State) -> bytes:
    """A tree as bytes; the same bytes for the same tree."""
    arrays: list[NDArray[Any]] = []
    outline = json.dumps(_outlined(state, arrays), separators=(",", ":")).encode()
    parts: list[bytes | memoryview] = [_LENGTH.pack(len(outline)), outline, _padding(_LENGTH.size + len(outline))]
    for array in arrays:
        parts += [np.ascontiguousarray(array).data.cast("B") if array.size else b"", _padding(array.nbytes)]
    content = b"".join(parts)
    body = compress(content)
    return _HEAD.pack(_MAGIC, FORMAT, _digest(len(content), body), len(content)) + body


def unpack(data: bytes) -> State:
    """The tree again; its arrays are views, not to be written. Raises SnapshotError."""
    if len(data) < _HEAD.size or data[: len(_MAGIC)] != _MAGIC:
        raise SnapshotError("this is no snapshot")
    _, version, digest, size = _HEAD.unpack_from(data)
    if version != FORMAT:
        raise SnapshotVersionError(f"the snapshot is of format {version}, this oxiseq reads format {FORMAT}")
    body = memoryview(data)[_HEAD.size :]
    if _digest(size, body) != digest:
        raise SnapshotError("the snapshot is damaged: its checksum is wrong")
    content = decompress(body, size)
    (length,) = _LENGTH.unpack_from(content)
    outline = json.loads(memoryview(content)[_LENGTH.size : _LENGTH.size + length].tobytes())
    tree: State = _filled(outline, content, [_LENGTH.size + length])
    return tree


def _digest(size: int, body: bytes | memoryview) -> bytes:
    made = hashlib.blake2b(_LENGTH.pack(size), digest_size=16, person=struct.pack("<I", FORMAT))
    made.update(body)
    return made.digest()


def _padding(size: int) -> bytes:
    return bytes(-size % _ALIGNED)


# an array in the outline: its type and shape; the arrays themselves come in the order of the outline

_ARRAY: Final = "\0array"


def _outlined(value: Any, arrays: list[NDArray[Any]]) -> Any:
    match value:
        case np.ndarray():
            arrays.append(value)
            return {_ARRAY: [_described(value.dtype), *value.shape]}
        case dict():
            return {name: _outlined(each, arrays) for name, each in value.items()}
        case list() | tuple():
            return [_outlined(each, arrays) for each in value]
        case np.integer():
            return int(value)
        case None | bool() | int() | float() | str():
            return value
    raise TypeError(f"not a part of a saved state: {value!r}")


def _filled(value: Any, content: bytes, at: list[int]) -> Any:
    if isinstance(value, list):
        return [_filled(each, content, at) for each in value]
    if not isinstance(value, dict):
        return value
    if _ARRAY not in value:
        return {name: _filled(each, content, at) for name, each in value.items()}
    described, *shape = value[_ARRAY]
    dtype = _layout(json.dumps(described))
    start = at[0] + -at[0] % _ALIGNED
    count = int(np.prod(shape, dtype=np.int64))
    at[0] = start + count * dtype.itemsize
    return np.frombuffer(content, dtype, count, start).reshape(shape) if count else np.zeros(shape, dtype)


@lru_cache
def _described(layout: np.dtype[Any]) -> Any:
    """A type as JSON has it; a state has the same few many times, and NumPy takes long to describe records."""
    return dtype_to_descr(layout)


@lru_cache
def _layout(described: str) -> np.dtype[Any]:
    """The type that JSON describes. Raises ValueError, TypeError."""
    return descr_to_dtype(_as_tuples(json.loads(described)))


def _as_tuples(described: str | Sequence[Any]) -> Any:
    """JSON has made lists of the tuples in a description of records."""
    return described if isinstance(described, str) else [tuple(field) for field in described]
