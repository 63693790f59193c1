"""Work that somebody waits for: it ends when nobody does any more.

A server runs a request within `attended`; what parses long bodies asks `check` again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, ParamSpec, TypeVar

from oxiseq.engine.errors import OxiseqError

P = ParamSpec("P")
T = TypeVar("T")
_GONE: Final[ContextVar[Callable[[], bool] | None]] = ContextVar("oxiseq_gone", default=None)


class AbandonedError(OxiseqError):
    """The client has gone before its request was read."""


@contextmanager
def attended(gone: Callable[[], bool]) -> Iterator[None]:
    """What this thread does within ends once `gone` says so."""
    token = _GONE.set(gone)
    try:
        yield
    finally:
        _GONE.reset(token)


def is_attended() -> bool:
    """Whether somebody may go."""
    return _GONE.get() is not None


def looking(step: Callable[P, T], every: int = 1) -> Callable[P, T]:
    """The function as it is, but at each `every`-th call it is looked whether somebody waits: else AbandonedError."""
    calls = 0

    def looked(*given: P.args, **named: P.kwargs) -> T:
        nonlocal calls
        calls += 1
        if not calls % every:
            check()
        return step(*given, **named)

    return looked


def check() -> None:
    """Raise AbandonedError if nobody waits any more."""
    gone = _GONE.get()
    if gone is not None and gone():
        raise AbandonedError("the client has gone")
