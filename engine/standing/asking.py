"""Queries the store for a whole answer, where operators do not keep it.

In the flow: a plan's `asks` → the store → **solutions**, in the plan's columns. Nothing here touches what a query
keeps, so it can be done while that changes, by any thread: the store answers as it is when it begins.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import ceil
from typing import Final, TypeAlias

from pyoxigraph import QueryBoolean, QuerySolutions, Store

from oxiseq.engine.errors import KbError, LimitError
from oxiseq.engine.expressions.times import FUNCTIONS
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.records import dataclass

Solutions: TypeAlias = list[tuple[Term | None, ...]]
_LOOK: Final = 64
"""Rows between checks of the clock."""


@dataclass(frozen=True, slots=True)
class Question:
    """asks: a SELECT or an ASK; names: its columns, empty for those that it lacks; most_rows: of the answer;
    most_seconds: to wait for it, None: without end; is_wanted: whether anybody waits for it still."""

    asks: str
    names: tuple[str, ...]
    most_rows: int
    most_seconds: float | None
    is_wanted: Callable[[], bool]


Asker: TypeAlias = Callable[[Question], Solutions]
"""Answers a query from the store's state of now or of any time since the call. Raises KbError, LimitError."""


def asked(store: Store, question: Question) -> Solutions:
    """The answer, each row as often as it is there. Raises KbError, LimitError.

    The store cannot be interrupted: that it takes too long is known at its next row, or when it is through.
    """
    begun = time.monotonic()
    try:
        found = store.query(question.asks, custom_functions=FUNCTIONS)
        check_time(question, begun)
        assert isinstance(found, QueryBoolean | QuerySolutions)
        return solutions(found, question, begun)
    except (SyntaxError, ValueError, OSError) as error:
        raise refused(error) from error


def solutions(found: QueryBoolean | QuerySolutions, question: Question, begun: float) -> Solutions:
    """An answer in the question's columns. Raises LimitError."""
    if isinstance(found, QueryBoolean):
        return [()] * bool(found)
    known = {variable.value for variable in found.variables}
    names = [name if name in known else None for name in question.names]
    rows: Solutions = []
    for solution in found:
        rows.append(tuple(None if name is None else solution[name] for name in names))
        check_rows(question, len(rows))
        if len(rows) % _LOOK == 1:
            check_time(question, begun)
    check_time(question, begun)
    return rows


def refused(error: Exception) -> KbError:
    """What the store says that it cannot answer."""
    return KbError(f"the store refuses a query: {error}")


def check_rows(question: Question, rows: int) -> None:
    """Raises LimitError for too many."""
    if rows > question.most_rows:
        raise LimitError(rows, question.most_rows, "rows of an answer")


def check_time(question: Question, begun: float) -> None:
    """Raises LimitError for what was begun too long ago, by the monotonic clock; KbError where nobody wants it."""
    if not question.is_wanted():
        raise KbError("nobody waits for the answer any more")
    took, most = time.monotonic() - begun, question.most_seconds
    if most is not None and took > most:
        raise LimitError(ceil(took), int(most), "seconds of evaluation on the store")


def bare(error: Exception) -> Exception:
    """An error for other threads: its frames hold what the store has given, which only this thread may let go of."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)
