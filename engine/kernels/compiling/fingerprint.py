"""What a compiled kernel was made of, as one number: the kernel, all functions that it calls, wherever they stand, and
the constants, dtypes and classes that these name.

In the flow: `options` → **`KernelCache`** → Numba's cache on disk. Numba itself takes a compiled kernel as fresh while
the kernel's own file is unchanged. Here it is fresh while this number is: a change of an inlined callee, or of a
constant in another module, compiles what uses it again, and nothing else.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

import llvmlite
import numba
import numpy as np
from numba.core import types
from numba.core.caching import CompileResultCacheImpl, FunctionCache

from oxiseq.engine.kernels.compiling.later import Later

_LIBRARIES: Final = frozenset({"numba", "llvmlite", "numpy", "math"})
"""Whose versions say what they do."""
_PLAIN: Final = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype)
_NAME: Final = re.compile(r"[^\W\d]\w*")


class _CacheNames(CompileResultCacheImpl):
    """The names of a kernel's files: without its line, so that it takes the place of what it was before."""

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        name = fullname.replace("<", "").replace(">", "")
        return f"{name}.py{sys.version_info[0]}{sys.version_info[1]}{abiflags}"


class KernelCache(FunctionCache):
    """Numba's cache of one kernel, whose entries are fresh while the kernel's fingerprint is.

    The fingerprint is computed when the kernel is first looked up: by then its module is complete.
    """

    _impl_class = _CacheNames

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled kernel, None where there is none."""
        self._stamp(sig)
        return super().load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store a compiled kernel in place of the one before."""
        self._stamp(sig)
        super().save_overload(sig, data)

    def _stamp(self, signature: Any) -> None:
        self._cache_file._source_stamp = fingerprint(self._py_func, signature)


def fingerprint(function: Callable[..., Any], signature: Any = ()) -> str:
    """The fingerprint of a Python function as a kernel with arguments of these Numba types, as hexadecimal digits."""
    found = hashlib.sha256(_compiler().encode())
    for part in (*_parts(function, set()), *_layouts(signature)):
        found.update(part.encode())
        found.update(b"\0")
    return found.hexdigest()


@cache
def _compiler() -> str:
    """How kernels are compiled: Numba, NumPy, this package, and the checks that are switched on."""
    sources = b"".join(file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py")))
    versions = (numba.__version__, llvmlite.__version__, np.__version__, sys.version_info[:2])
    checked: Any = getattr(numba.config, "BOUNDSCHECK", None)
    return repr((versions, checked, hashlib.sha256(sources).hexdigest()))


def _layouts(signature: Any) -> Iterator[str]:
    """The fields of the records and named tuples among a kernel's arguments: their names decide what code reads."""
    for type_ in signature:
        if isinstance(type_, types.BaseNamedTuple):
            named: Any = type_
            yield repr((named.instance_class.__qualname__, named.fields))
            yield from _layouts(named.types)
        elif isinstance(type_, types.BaseTuple):
            yield from _layouts(type_)


def _parts(value: Any, seen: set[int]) -> Iterator[str]:
    """What there is to say about a value that a kernel names, and about all that it names itself, each once."""
    if isinstance(value, _PLAIN):
        yield repr(value.descr if isinstance(value, np.dtype) and value.fields else value)
        return
    if id(value) in seen:
        return
    seen.add(id(value))
    function = _python_of(value)
    if isinstance(function, FunctionType):
        yield from _of_function(function, seen)
    elif isinstance(value, tuple | list | frozenset):
        for each in sorted(value, key=repr) if isinstance(value, frozenset) else value:
            yield from _parts(each, seen)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield repr(key)
            yield from _parts(each, seen)
    elif isinstance(value, np.ndarray):
        yield repr((value.dtype.descr, value.shape, value.tobytes()))
    elif isinstance(value, type):
        yield repr((value.__module__, value.__qualname__, getattr(value, "_fields", ())))
    else:
        yield _of_object(value)


def _python_of(value: Any) -> Any:
    """The Python function of what Numba has made ready, or will; the value itself where it is neither."""
    if isinstance(value, Later):
        return value.function
    return getattr(value, "py_func", getattr(value, "_defn", value))  # `_defn`: of an intrinsic


def _of_function(function: FunctionType, seen: set[int]) -> Iterator[str]:
    yield function.__qualname__
    yield from _of_code(function.__code__)
    for value in (function.__defaults__, function.__kwdefaults__):
        yield from _parts(value, seen)
    for cell in function.__closure__ or ():
        yield from _parts(cell.cell_contents, seen)
    for value in _named(function):
        yield from _parts(value, seen)


def _of_code(code: CodeType) -> Iterator[str]:
    yield repr((code.co_code, code.co_names, code.co_varnames))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _of_code(constant)
        else:
            yield repr(sorted(constant, key=repr) if isinstance(constant, frozenset) else constant)


def _named(function: FunctionType) -> Iterator[Any]:
    """The values of the globals that a function names, in its annotations, too, and of what it reads from modules."""
    names = dict.fromkeys(_names(function.__code__))
    annotated = (name for each in function.__annotations__.values() for name in _NAME.findall(str(each)))
    names |= dict.fromkeys(annotated)
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType):
            if _library(value.__name__) not in _LIBRARIES:
                yield from (vars(value)[each] for each in names if each in vars(value))
        elif name in function.__globals__:
            yield value


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _library(module: str) -> str:
    return module.partition(".")[0]


def _of_object(value: Any) -> str:
    """Anything else: a function of C, a type of Numba, which its text tells apart."""
    text = repr(value)
    if " at 0x" in text:
        if _library(type(value).__module__) in _LIBRARIES:
            return type(value).__qualname__
        raise TypeError(f"a kernel names {text}: fingerprint.py does not know what decides its code")
    return text
