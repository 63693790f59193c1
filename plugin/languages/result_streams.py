"""Who reads whose results: a query that reads its own result stream, also through other queries, is refused.

A result at T is known when T is complete. So there is no instant at which the query itself could see it that does not
depend on how events are batched (semantics.md 2.6a). Rules of EP-SPARQL are no queries and may derive from each other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from oxiseq.engine.errors import QueryError
from oxiseq.grammar.algebra import NOWHERE
from oxiseq.grammar.records import dataclass
from oxiseq.matches.shape import Shape

_HINT = "SUPPRESS drops repeated matches, and rules of EP-SPARQL may derive from each other"


@dataclass(frozen=True, slots=True)
class StreamUse:
    """A query, the streams that it reads, and the one that its results go to."""

    name: str
    reads: Collection[str]
    feeds: str | None

    @classmethod
    def of(cls, name: str, shape: Shape) -> StreamUse:
        """A compiled query."""
        return cls(name, shape.reads, shape.feeds)


def refuse_own_results(query: StreamUse, others: Iterable[StreamUse] = ()) -> None:
    """Raise QueryError if results of a query reach it through streams and the other queries."""
    path = None if query.feeds is None else _way_back(query, tuple(others))
    if path is not None:
        message = f"the result stream <{query.feeds}> is read by the query itself ({' -> '.join(path)})"
        raise QueryError(message, NOWHERE, hint=_HINT, code="own-results")


def _way_back(query: StreamUse, others: tuple[StreamUse, ...]) -> tuple[str, ...] | None:
    """The shortest way from a query through streams and queries to itself."""
    ways: list[tuple[StreamUse, tuple[str, ...]]] = [(query, (query.name,))]
    seen = set[str]()
    for reader, way in ways:  # which grows
        stream = reader.feeds
        if stream is None or stream in seen:
            continue
        seen.add(stream)
        if stream in query.reads:
            return (*way, f"<{stream}>", query.name)
        ways += [(other, (*way, f"<{stream}>", other.name)) for other in others if stream in other.reads]
    return None
