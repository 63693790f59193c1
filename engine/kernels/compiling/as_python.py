"""Kernels run as plain Python with `NUMBA_DISABLE_JIT=1`: the same functions, many times as slow, and every access is
checked. What `intrinsic_or` and `either` are given for Python is used then, and only then.

An index is refused that is outside its array, below 0 too; so is a number that its place has no room for. Integers are
Python's; those without a sign are NumPy's, which go round at 2^64 (memory/numbers.py). Doubles are NumPy's, so that one
divided by 0 is infinite. What is at an address is looked up in memory/lent.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar

import numpy as np
from numba import config
from numba.extending import intrinsic

AS_PYTHON: Final = bool(config.DISABLE_JIT)  # type: ignore[attr-defined]  # Numba makes its names when it is loaded
"""Whether kernels run as Python in this process."""

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def either(compiled: T, python: Any) -> T:
    """The second where kernels run as Python, else the first."""
    return python if AS_PYTHON else compiled


def intrinsic_or(python: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Numba's `intrinsic`, and what does the same in Python."""
    return lambda typed: either(intrinsic, lambda _: python)(typed)


def then(action: Callable[..., None]) -> Callable[[F], F]:
    """In Python, a function after which `action` is called with what it answers and what it is given."""
    return lambda function: either(function, _followed(function, action))


def _followed(function: Callable[..., Any], action: Callable[..., None]) -> Callable[..., Any]:
    def both(*args: Any) -> Any:
        answer = function(*args)
        action(answer, *args)
        return answer

    return both


def runnable(function: Callable[..., Any]) -> Any:
    """A kernel that Python calls: it has its arrays `checked`, and answers as a compiled one does."""

    @wraps(function)
    def called(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return _answered(function(*map(checked, args)))

    made: Any = called
    made.py_func = part(function)
    return made


def part(function: T) -> T:
    """A function that kernels call: the constant arrays that it names are `checked`."""
    known: dict[str, Any] = function.__globals__  # type: ignore[attr-defined]
    for name in function.__code__.co_names:  # type: ignore[attr-defined]
        if type(known.get(name)) is np.ndarray:
            known[name] = checked(known[name])
    return function


def checked(value: Any) -> Any:
    """A kernel's argument: an array is a `Checked` one of the same memory, a named tuple of arrays is one of these."""
    if isinstance(value, np.ndarray):
        return value.view(Checked)
    if isinstance(value, tuple):
        return value._make(map(checked, value)) if hasattr(value, "_make") else tuple(map(checked, value))
    return value


def _answered(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_answered, value))
    return value.item() if isinstance(value, np.generic) else value


class Checked(np.ndarray[Any, Any]):
    """An array of which an element is a number of Python, or a `_Record`, and has its place within the array."""

    def __getitem__(self, index: Any) -> Any:
        _check(self, index)
        return _element(super().__getitem__(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        _check(self, index)
        super().__setitem__(index, value._void if type(value) is _Record else value)


def _check(array: Checked, index: Any) -> None:
    """Raises IndexError for an index that is outside, or below 0."""
    for i, length in zip(index if type(index) is tuple else (index,), array.shape, strict=False):
        if not isinstance(i, slice) and not 0 <= i < length:
            raise IndexError(f"index {index} is outside of an array of shape {array.shape}")


class _Record:
    """An element of an array of records."""

    __slots__ = ("_void",)

    def __init__(self, void: np.void) -> None:
        object.__setattr__(self, "_void", void)

    def __getattr__(self, name: str) -> Any:
        return _element(self._void[name])

    def __setattr__(self, name: str, value: Any) -> None:
        self._void[name] = value


def _element(value: Any) -> Any:
    make = _MADE.get(type(value))
    return value if make is None else make(value)


_MADE: Final[dict[type, Callable[[Any], Any]]] = {
    **dict.fromkeys((np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32), int),
    np.bool_: bool,
    np.float32: np.float64,
    np.void: _Record,
    np.ndarray: checked,
}
