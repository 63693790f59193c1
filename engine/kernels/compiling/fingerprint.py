"""What a compiled kernel was made of, as one number: the kernel, all functions that it calls, wherever they stand, and
the constants, dtypes and classes that these name.

In the flow: `options` → **`KernelCache`** → Numba's cache on disk. Numba itself takes a compiled kernel as fresh while
the kernel's own file is unchanged. Here it is fresh while this number is: a change of an inlined callee, or of a
constant in another module, compiles what uses it again, and nothing else.
"""

from __future__ import annotations

import hashlib
import pickle
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

import llvmlite.binding
import numba
import numpy as np
from numba.core import types
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.runtime.nrt import rtsys

from oxiseq.engine.kernels.archive import key_of, shipped
from oxiseq.engine.kernels.compiling.later import Later
from oxiseq.engine.kernels.resident import give_back

_LIBRARIES: Final = frozenset({"numba", "llvmlite", "numpy", "math"})
"""Whose versions say what they do."""
_PLAIN: Final = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype)
_NAME: Final = re.compile(r"[^\W\d]\w*")


class _Results(CompileResultCacheImpl):
    """How a compiled kernel is kept: under a name without its line, so that it takes the place of what it was before,
    and without its code for linking, of which only the names are kept: no kernel calls another one by name."""

    def reduce(self, cres: Any) -> Any:
        """What is kept of a compiled kernel."""
        (name, kind, (code, _)), *others = super().reduce(cres)
        return (name, kind, (code, _names_in(cres.library._get_module_for_linking()))), *others

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        name = fullname.replace("<", "").replace(">", "")
        return f"{name}.py{sys.version_info[0]}{sys.version_info[1]}{abiflags}"


class KernelCache(FunctionCache):
    """Numba's cache of one kernel, whose entries are fresh while the kernel's fingerprint is.

    The fingerprint is computed when the kernel is first looked up: by then its module is complete.
    """

    _impl_class = _Results

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._known: dict[Any, str] = {}

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled kernel, of the archive or of the cache; None where there is none."""
        rtsys.initialize(target_context)  # Numba makes all ready for compiling here, a fifth of a second
        archive = shipped()
        data = None if archive is None else archive.find(*self.key(sig))
        if data is not None:
            found = self._impl.rebuild(target_context, pickle.loads(data))
        else:
            self._stamp(sig)
            found = self._load_overload(sig, target_context)
        give_back()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store a compiled kernel in place of the one before."""
        self._stamp(sig)
        super().save_overload(sig, data)
        give_back()

    def has(self, sig: Any, target_context: Any) -> bool:
        """Whether there is a compiled kernel. Nothing of it is loaded."""
        archive = shipped()
        if archive is not None and archive.has(*self.key(sig)):
            return True
        self._stamp(sig)
        return self._index_key(sig, target_context.codegen()) in self._cache_file._load_index()

    def packed(self, compiled: Any, signature: Any) -> tuple[str, str, bytes]:
        """What an archive has of a compiled kernel: its key, its fingerprint, and what is loaded."""
        data = pickle.dumps(self._impl.reduce(compiled), protocol=5)
        return key_of(self._py_func, signature), self._fingerprint(signature), data

    def key(self, signature: Any) -> tuple[str, Callable[[], str]]:
        """What an archive is asked for."""
        return key_of(self._py_func, signature), partial(self._fingerprint, signature)

    def _stamp(self, signature: Any) -> None:
        self._cache_file._source_stamp = self._fingerprint(signature)

    def _fingerprint(self, signature: Any) -> str:
        if signature not in self._known:
            self._known[signature] = fingerprint(self._py_func, signature)
        return self._known[signature]


def fingerprint(function: Callable[..., Any], signature: Any = ()) -> str:
    """The fingerprint of a Python function as a kernel with arguments of these Numba types, as hexadecimal digits."""
    found = hashlib.sha256(_compiler().encode())
    for part in (*_parts(function, set()), *_layouts(signature)):
        found.update(part.encode())
        found.update(b"\0")
    return found.hexdigest()


def _names_in(module: Any) -> bytes:
    """A module of LLVM that defines the same names, so that Numba finds them in the compiled code."""
    functions = [f'define void @"{each.name}"() {{ ret void }}' for each in module.functions if not each.is_declaration]
    variables = [f'@"{each.name}" = global i8 0' for each in module.global_variables if not each.is_declaration]
    made: bytes = llvmlite.binding.parse_assembly("\n".join(functions + variables)).as_bitcode()
    return made


@cache
def _compiler() -> str:
    """How kernels are compiled: Numba, NumPy's ABI, this package, and the checks that are switched on."""
    sources = b"".join(file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py")))
    versions = (numba.__version__, llvmlite.__version__, np.__version__.partition(".")[0], sys.version_info[:2])
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
    yield f"{function.__module__}.{function.__qualname__}"  # what is kept of a kernel names modules, too
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
        if name in function.__globals__:
            yield from _reached(function.__globals__[name], names, ())


def _reached(value: Any, names: Iterable[str], through: tuple[ModuleType, ...]) -> Iterator[Any]:
    """A value that is named, or those that may be read from it where it is a module: it stands elsewhere in each
    installation."""
    if not isinstance(value, ModuleType):
        yield value
    elif value not in through and _library(value.__name__) not in _LIBRARIES:
        for name in names:
            if name in vars(value):
                yield from _reached(vars(value)[name], names, (*through, value))


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
