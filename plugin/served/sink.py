"""A sink of a served query: where its matches are delivered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oxiseq.grammar.arguments import faced
from oxiseq.served.wire import Wire


@faced
class ServedSink:
    """What `query.sink(...)` answers."""

    def __init__(self, wire: Wire, query: str, name: str) -> None:
        """`ServedQuery.sink` makes it."""
        self._wire = wire
        self.query, self.name = query, name

    @property
    def status(self) -> Mapping[str, Any]:
        """All that the server says of it now: settings without secrets, `delivered`, `waiting`, `failing_since`,
        `error`, `next_try`. Raises UnknownError."""
        value: Mapping[str, Any] = self._wire.send("GET", "queries", self.query, "sinks", self.name).json()
        return value

    def delete(self) -> None:
        """Deliver no more."""
        self._wire.send("DELETE", "queries", self.query, "sinks", self.name, again=False)

    def __repr__(self) -> str:
        return f"<ServedSink {self.name!r} of {self.query!r}>"
