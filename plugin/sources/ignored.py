"""Warnings that a query gets about its events: late ones, those that it ignores because its language cannot take
them (CEQL takes tuple events only, EP-SPARQL none that start after they end; semantics.md 3 and 5), and columns that
can never have the type that a CEQL query needs.
"""

from __future__ import annotations

from typing import Final

from oxiseq.engine.events.faults import Faults
from oxiseq.grammar.arguments import public
from oxiseq.sources.warned import warn_caller

_TOLD: Final = 3
"""Most columns whose reason a warning gives."""


class IgnoredWarning(UserWarning):
    """Events that the language of a query cannot take have been ignored."""


@public
class LateWarning(UserWarning):
    """Events of a stream came behind its watermark, so that no match has them.

    >>> import warnings
    >>> import oxiseq
    >>> text = "SELECT ?s FROM STREAM S <urn:s> WHERE { SEQ(A) DEFINE GPM A ON S { ?s ?p ?o } }"
    >>> events = iter([("<urn:a> <urn:b> 1 .", 20), ("<urn:a> <urn:b> 2 .", 10)])
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     _ = oxiseq.run(text, {"S": events})
    >>> told[0].category is oxiseq.LateWarning
    True
    """


def warn_of_late(late: int, events: int) -> None:
    """Warn of the late ones among events that were pushed together."""
    if late:
        warn_caller(
            f"{late:,} of {events:,} events were late, so no match has them: sort them by time first, or register the "
            "queries with lateness=, as '5s'",
            LateWarning,
        )


class ColumnWarning(UserWarning):
    """A column holds something else than the query compares it with."""


def warn_of(faults: Faults, before: int = 0) -> None:
    """Warn of those that came after the first `before`, if there are some."""
    count = faults.count - before
    if count <= 0:
        return
    named = faults.first[before:][:_TOLD]
    more = [f"and {count - len(named):,} more"] * (count > len(named))
    warn_caller(f"ignored: {'; '.join([*named, *more])}", IgnoredWarning)
