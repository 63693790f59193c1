"""How kernels are compiled: cached on disk, without Python's checks on division.

`kernel` is for what Python calls. `inner` is for what only kernels call: no door to Python is made, and nothing
is cached but the kernel that holds it, which is compiled again when one of them changes (fingerprint.py).

parts.py works inside Numba's compiler. Under a Numba that it was not tried with, kernels are compiled in Numba's own
way: the same code, and a first run that takes several times as long (`PLAIN`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import numba
from numba import njit, types

from oxiseq.engine.kernels.compiling.as_python import AS_PYTHON, part, runnable
from oxiseq.engine.kernels.compiling.fingerprint import KernelCache
from oxiseq.engine.kernels.compiling.later import Later, LaterKernel

KNOWN: Final = ("0.68.",)
"""How the versions of Numba begin that parts.py was tried with."""
PLAIN: Final = not numba.__version__.startswith(KNOWN)
"""Whether this is another one."""

F = TypeVar("F", bound=Callable[..., Any])


def _compiler(name: str) -> dict[str, Any]:
    """The option that has Numba use one of the compilers in parts.py."""
    if PLAIN:
        return {}
    parts = importlib.import_module("oxiseq.engine.kernels.compiling.parts")  # another Numba may not have what it needs
    return {"pipeline_class": getattr(parts, name)}


_COMMON: Final[dict[str, Any]] = {"error_model": "numpy", "no_cfunc_wrapper": True}
_WHOLE: Final = _compiler("KernelCompiler")
_PART: Final = _compiler("PartCompiler")


def kernel(function: F) -> F:
    """Compile a function that Python calls."""
    return cast(F, _cached(function))


def unlocked(function: F) -> F:
    """Compile a function that Python calls and that runs without Python's lock: other threads run meanwhile.

    No other thread may use its arrays.
    """
    return cast(F, _cached(function, nogil=True))


def inner(function: F) -> F:
    """Compile a function that only kernels call; it makes no arrays, so that none is counted."""
    return cast(F, _part(function, _nrt=False))


def allocating(function: F) -> F:
    """`inner` for a function that makes arrays."""
    return cast(F, _part(function, _nrt=True))


def in_python(function: F) -> F:
    """A function of a kernel as Python runs it: on numbers, or on arrays of them."""
    return cast(F, getattr(function, "py_func", function))


def before_compiling(kernel: Callable[..., Any], action: Callable[[], None]) -> None:
    """Call `action` once, before the kernel is looked up in the cache or compiled."""
    dispatcher: Any = kernel

    def compile_(signature: Any) -> Any:
        action()
        vars(dispatcher).pop("compile", None)  # once is enough
        return dispatcher.compile(signature)

    dispatcher.compile = compile_


def _cached(function: Callable[..., Any], **options: Any) -> Any:
    if AS_PYTHON:
        return runnable(function)
    options |= {**_COMMON, **_WHOLE, "_nrt": True}
    if not PLAIN:
        return _widened(LaterKernel(function, KernelCache, **options))
    made = njit(cache=True, **options)(function)
    made._cache = KernelCache(function)
    return _widened(made)


def _part(function: Callable[..., Any], **options: Any) -> Any:
    if AS_PYTHON:
        return part(function)
    options |= {**_COMMON, **_PART, "no_cpython_wrapper": True}
    return _widened(njit(**options)(function) if PLAIN else Later(function, **options))


def _widened(dispatcher: Any) -> Any:
    """Let kernels call a function with any integers: it is compiled once, for int64 and not for int32, literals...

    Numba compiles a function again for each type of argument, the literal -1 and the literal 0 included.
    """
    resolve = dispatcher.get_call_template

    def get_call_template(args: Any, keywords: Any) -> Any:
        return resolve(tuple(map(_wide, args)), {name: _wide(type_) for name, type_ in keywords.items()})

    dispatcher.get_call_template = get_call_template
    return dispatcher


def _wide(type_: Any) -> Any:
    plain = types.unliteral(type_)
    return types.int64 if isinstance(plain, types.Integer) and plain != types.uint64 else plain
