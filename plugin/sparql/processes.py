"""Queries evaluated in processes, over the store's content at the time of the request."""

from __future__ import annotations

from typing import Any, TypeVar

from pyoxigraph import QueryResultsFormat, RdfFormat

from oxiseq.grammar.records import dataclass
from oxiseq.sparql.counting import counter_of
from oxiseq.sparql.evaluation import Sink
from oxiseq.sparql.media import GRAPHS, RESULTS, content_type, wanted
from oxiseq.sparql.operations import Operation
from oxiseq.sparql.problems import Problem
from oxiseq.sparql.snapshots import Snapshots
from oxiseq.sparql.workers import Worker, Workers

_Format = TypeVar("_Format", RdfFormat, QueryResultsFormat)


@dataclass(frozen=True, slots=True)
class Processes:
    """Workers, and the snapshots that they read."""

    workers: Workers
    snapshots: Snapshots

    @property
    def possible(self) -> bool:
        """Whether there is a snapshot: of a large store in memory there is none."""
        return self.snapshots.possible

    def answer(self, operation: Operation, base: str, accept: str | None, sink: Sink) -> None:
        """Evaluate a query whose `ticket` is one of those that can be ended. Raises Problem, Stopped, and what
        pyoxigraph raises."""
        receiver = _Receiver(accept, sink)
        with self.snapshots.current() as source:
            if source is None:
                raise Problem(503, "the store has just grown", "ask again", headers=(("Retry-After", "1"),))
            job = {
                "source": source,
                "text": operation.text,
                "base": base,
                "union": operation.union,
                "default_graphs": operation.default_graphs,
                "named_graphs": operation.named_graphs,
                "rows": sink.limits.rows,
                "graph_format": receiver.graph_name,
                "results_format": receiver.results_name,
            }
            self.workers.run(job, receiver, receiver.works)

    def close(self) -> None:
        """End what is running."""
        self.workers.close()
        self.snapshots.close()


class _Receiver:
    """Passes an answer on to a sink; see workers.Receiver."""

    def __init__(self, accept: str | None, sink: Sink) -> None:
        self._accept, self._sink = accept, sink
        self._graph = _wanted(accept, GRAPHS, RdfFormat.TURTLE)
        self._results = _wanted(accept, RESULTS, QueryResultsFormat.JSON)
        self.graph_name, self.results_name = _name(self._graph), _name(self._results)
        self._worker: Worker | None = None

    def works(self, worker: Worker) -> None:
        """The process that does it."""
        self._worker = worker

    def begin(self, kind: str) -> None:
        """Raises Problem 406 when none of the formats of this kind is accepted."""
        if kind == "triples":
            wanted(self._accept, GRAPHS)
            self._sink.begin(content_type(self._graph))
        else:
            wanted(self._accept, RESULTS)
            counter = counter_of(self._results) if kind == "solutions" else None
            self._sink.begin(content_type(self._results), counter)

    def write(self, data: bytes) -> None:
        """Raises Stopped."""
        self._sink.write(data)

    def check(self) -> None:
        """Raises Stopped, and Problem 503 when its place is needed by others."""
        self._sink.check()
        if self._sink.ticket is not None and self._worker is not None:
            self._sink.ticket.stay(self._worker.yield_to_others)


def _wanted(accept: str | None, offers: Any, otherwise: _Format) -> _Format:
    """The format of an answer of this kind; that none is acceptable is reported when the answer is of it."""
    try:
        found: _Format = wanted(accept, offers)
    except Problem:
        return otherwise
    return found


def _name(format_: RdfFormat | QueryResultsFormat) -> str:
    """As pyoxigraph's class names it."""
    kind = type(format_)
    return next(name for name in dir(kind) if name.isupper() and getattr(kind, name) == format_)
