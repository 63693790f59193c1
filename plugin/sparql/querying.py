"""Query and update operations on the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import IO, Any, cast

from pyoxigraph import NamedNode, QueryBoolean, QuerySolutions, QueryTriples, Triple, serialize

from oxiseq.engine.attended import check
from oxiseq.grammar.records import dataclass
from oxiseq.sparql.backend import Backend
from oxiseq.sparql.counting import counter_of
from oxiseq.sparql.evaluation import Evaluations, Sink, Stopped
from oxiseq.sparql.guards import check_calls, check_query, check_size, check_syntax, check_update
from oxiseq.sparql.loading import loaded
from oxiseq.sparql.media import GRAPHS, RESULTS, content_type, wanted
from oxiseq.sparql.messages import Request, Response
from oxiseq.sparql.operations import Operation, query_of, update_of
from oxiseq.sparql.plainness import is_plain
from oxiseq.sparql.problems import Problem, sparql_problem
from oxiseq.sparql.processes import Processes
from oxiseq.sparql.services import EMPTY, Services, asked, blocks, inner_text, with_values
from oxiseq.sparql.settings import SparqlSettings
from oxiseq.sparql.using import with_using


@dataclass(frozen=True, slots=True)
class Querying:
    """Answers queries and carries out updates; `services` are sources that SERVICE may name."""

    store: Backend
    settings: SparqlSettings
    evaluations: Evaluations
    services: Services | None = None
    processes: Processes | None = None

    def query(self, request: Request) -> Response:
        """The answer, in the format that the client accepts. Raises Problem."""
        operation = query_of(request)
        accept = request.header("accept")
        streams = self._asks_streams(operation.text, request)
        processes = self._processes_for(operation.text) if not streams else None
        lane = self.evaluations.ready
        if processes is not None:
            lane = self.evaluations.ended
        elif streams or not is_plain(operation.text):
            lane = self.evaluations.unended

        def answer(sink: Sink) -> None:
            text = self._checked_query(operation.text, request.url, sink.check)
            given = operation.default_graphs or operation.named_graphs
            union = operation.union or (self.settings.union_default_graph and not given)
            checked = replace(operation, text=text, union=union)
            if processes is None:
                write_results(self._results(checked, request.url), accept, sink)
            else:
                processes.answer(checked, request.url, accept, sink)

        def work(sink: Sink) -> None:
            try:
                answer(sink)
            except SyntaxError as error:
                raise sparql_problem(operation.text, error, update=False) from None

        return self.evaluations.answer(work, request.gone, lane)

    def _asks_streams(self, text: str, request: Request) -> bool:
        """Whether a SERVICE block is of a stream, which the client must be allowed to read; a text that is too long is
        refused later, and in an update it is data. Raises DeniedError."""
        if self.services is None or len(text) > self.settings.limits.query:
            return False
        found = blocks(text, self.services, request.url)
        request.rights.demand_reading((block.iri for block in found), kb=False)
        return bool(found)

    def _processes_for(self, text: str) -> Processes | None:
        """Where a query is evaluated that may not notice its limits; None if that is here. What a SERVICE block reads
        of a stream is here in any case: its events are in memory."""
        if self.processes is None or is_plain(text) or not self.processes.possible:
            return None
        return self.processes

    def update(self, request: Request) -> Response:
        """204 when all of it is done; otherwise nothing is, as when the client goes before pyoxigraph begins. Raises
        Problem."""
        operation = update_of(request)
        if operation.union:
            raise Problem(501, "not supported", "using-union-graph: name the graphs by using-graph-uri")
        text = with_using(operation.text, operation.default_graphs, operation.named_graphs)
        self._asks_streams(text, request)

        def work() -> None:
            try:
                checked = self._checked_update(text, request.url)
                if self.settings.allow_load:
                    checked = loaded(checked, request.url, self.settings)
                check()
                self.store.update(checked, base_iri=request.url)
            except SyntaxError as error:
                raise sparql_problem(text, error, update=True) from None

        self.evaluations.call(work, request.gone)
        return Response(204)

    def _checked_query(self, text: str, base: str, check: Callable[[], None]) -> str:
        """The text as the store is to run it. Raises Problem."""
        check_size(text, self.settings)
        if self.services is None or not (found := blocks(text, self.services, base)):
            check_query(text, self.settings, base)
            return text
        skeleton = with_values(text, found, [EMPTY] * len(found))
        check_query(skeleton, self.settings, base)
        for block in found:
            check_query(inner_text(text, block), self.settings, base)
        check_syntax(skeleton, base)
        filled = with_values(text, found, list(asked(text, found, self.services, base, check)))
        check_calls(filled, self.settings, base, update=False)
        return filled

    def _checked_update(self, text: str, base: str) -> str:
        """The same for an update."""
        looked_at = self.services is not None and len(text) <= self.settings.limits.query  # else it is data
        if self.services is None or not looked_at or not (found := blocks(text, self.services, base)):
            check_update(text, self.settings, base)
            return text
        check_update(with_values(text, found, [EMPTY] * len(found)), self.settings, base)
        for block in found:
            check_query(inner_text(text, block), self.settings, base)
        filled = with_values(text, found, list(asked(text, found, self.services, base, check)))
        check_calls(filled, self.settings, base, update=True)
        return filled

    def _results(self, operation: Operation, base: str) -> QuerySolutions | QueryBoolean | QueryTriples:
        if not operation.default_graphs and not operation.named_graphs:
            return self.store.query(operation.text, base_iri=base, use_default_graph_as_union=operation.union)
        return self.store.query(
            operation.text,
            base_iri=base,
            default_graph=[NamedNode(iri) for iri in operation.default_graphs],
            named_graphs=[NamedNode(iri) for iri in operation.named_graphs],
        )


def write_results(results: QuerySolutions | QueryBoolean | QueryTriples, accept: str | None, sink: Sink) -> None:
    """Results to a sink, in the best format. Raises Problem 406 and Stopped."""
    output = cast("IO[bytes]", sink)
    if isinstance(results, QueryTriples):
        graph_format = wanted(accept, GRAPHS)
        sink.begin(content_type(graph_format))
        if sink.limits.rows is None:
            results.serialize(output, format=graph_format)
        else:
            serialize(_bounded(results, sink), output, format=graph_format)
        return
    format_ = wanted(accept, RESULTS)
    sink.begin(content_type(format_), counter_of(format_) if isinstance(results, QuerySolutions) else None)
    results.serialize(output, format=format_)


def _bounded(triples: Any, sink: Sink) -> Iterator[Triple]:
    limit = sink.limits.rows or 0
    for number, triple in enumerate(triples, start=1):
        if number > limit:
            raise Stopped(Problem(403, "too many results", f"at most {limit} triples are answered"))
        yield triple
