"""Streams as sources that SPARQL's SERVICE may name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyoxigraph import QuerySolutions

from oxiseq.engine.errors import OxiseqError
from oxiseq.grammar.records import dataclass
from oxiseq.journal import UnknownError
from oxiseq.live.api.problems import as_problem
from oxiseq.live.service import LiveService


@dataclass(frozen=True, slots=True)
class StreamServices:
    """`oxiseq.sparql.services.Services` of a live service: each stream is one."""

    service: LiveService

    def knows(self, iri: str) -> bool:
        """Whether there is a stream of this name."""
        try:
            self.service.streams.get(iri)
        except UnknownError:
            return False
        return True

    def ask(self, iri: str, queries: Sequence[str], base: str, check: Callable[[], None]) -> list[QuerySolutions]:
        """See `EventGraphs.query`. Raises Problem."""
        try:
            return self.service.graphs.query(iri, queries, base, check)
        except OxiseqError as error:
            raise as_problem(error) from None
