"""Queries that are started again where Python was too slow for Spark.

Spark gives a Python process that plans a query (it reads a source's offsets, or learns an operator's state) 10 s to
connect, which no setting changes; on a machine with many programs at work that is too short at times. Nothing has been
lost then: the query goes on from its checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from pyspark.errors import StreamingQueryException

_T = TypeVar("_T")
_TOO_SLOW: Final = "Python worker failed to connect back"
_STARTS: Final = 4


def started(run: Callable[[], _T]) -> _T:
    """What `run` gives, which starts a streaming query and awaits its end. Raises StreamingQueryException for whatever
    else a query fails with, and when Python has been too slow each time."""
    for _ in range(_STARTS - 1):
        try:
            return run()
        except StreamingQueryException as error:
            if _TOO_SLOW not in str(error):
                raise
    return run()
