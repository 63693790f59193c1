"""Query and update operations on the store.

Whether a query can be broken off at any row: it has a single triple pattern, and no more.

Each step of such a query writes a row, where a limit is noticed; a join, a filter or a sum may work for hours without
writing any. Told by the text's form alone; whatever is not plain by it is treated as if it never ended.

`using-graph-uri` and `using-named-graph-uri` of an update, written into its text as USING clauses.

pyoxigraph takes no dataset beside an update, so each `... WHERE` gets the clauses before it; `DELETE WHERE {P}`
becomes `DELETE {P} USING ... WHERE {P}`. The store parses the result, so a text that is malformed stays so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import IO, Any, Final, Protocol, cast

from pyoxigraph import (
    DefaultGraph,
    NamedNode,
    Quad,
    QueryBoolean,
    QuerySolutions,
    QueryTriples,
    RdfFormat,
    Triple,
    serialize,
)

from oxiseq.changes.operations import Token, tokens
from oxiseq.engine.attended import check
from oxiseq.engine.expressions.times import FUNCTIONS
from oxiseq.grammar.records import dataclass
from oxiseq.sparql.evaluation import Evaluations, Sink, Stopped, counter_of
from oxiseq.sparql.guards import check_calls, check_query, check_size, check_syntax, check_update, loaded
from oxiseq.sparql.messages import (
    GRAPHS,
    RESULTS,
    Operation,
    Problem,
    Request,
    Response,
    content_type,
    query_of,
    sparql_problem,
    update_of,
    wanted,
)
from oxiseq.sparql.processes import Processes
from oxiseq.sparql.services import EMPTY, Services, asked, blocks, inner_text, with_values
from oxiseq.sparql.settings import SparqlSettings

# --- backend ---------------------------------------------------------------------------------------------


class Backend(Protocol):
    """See `pyoxigraph.Store`."""

    def query(
        self,
        query: str,
        *,
        base_iri: str | None = None,
        use_default_graph_as_union: bool = False,
        default_graph: Sequence[NamedNode] | None = None,
        named_graphs: Sequence[NamedNode] | None = None,
    ) -> QuerySolutions | QueryBoolean | QueryTriples: ...

    def update(self, update: str, *, base_iri: str | None = None) -> None: ...

    def load(
        self,
        input: bytes,
        format: RdfFormat,
        *,
        base_iri: str | None = None,
        to_graph: NamedNode | DefaultGraph | None = None,
    ) -> None: ...

    def dump(
        self, output: IO[bytes], format: RdfFormat, *, from_graph: NamedNode | DefaultGraph | None = None
    ) -> None: ...

    def clear(self) -> None: ...

    def clear_graph(self, graph_name: NamedNode | DefaultGraph) -> None: ...

    def remove_graph(self, graph_name: NamedNode | DefaultGraph) -> None: ...

    def add_graph(self, graph_name: NamedNode) -> None: ...

    def contains_named_graph(self, graph_name: NamedNode) -> bool: ...

    def quads_for_pattern(
        self, subject: None, predicate: None, object: None, graph_name: NamedNode | DefaultGraph
    ) -> Iterable[Quad]: ...


# --- plainness -------------------------------------------------------------------------------------------

_LONGEST: Final = 10_000
_WORDS: Final = {"SELECT": "S", "ASK": "A", "WHERE": "W", "GRAPH": "G", "LIMIT": "L", "PREFIX": "P", "BASE": "B"}
_TERMS: Final = {"iri": "i", "name": "n", "variable": "v", "string": "s"}
_TRIPLE: Final = "[invs][inav](?:[invs]|d+)\\.?"
_FORM: Final = re.compile(rf"(?:Pni|Bi)*(?:A|S(?:v+|\*))W?\{{(?:{_TRIPLE}|G[inv]\{{(?:{_TRIPLE})?\}}\.?)?\}}(?:Ld+)?")


def is_plain(text: str) -> bool:
    """Whether it has this form."""
    if len(text) > _LONGEST:
        return False
    found = list(tokens(text))
    signs = "".join(map(_sign, found))
    if _FORM.fullmatch(signs) is None:
        return False
    asked = [token.text[1:] for token in found[signs.index("{") :] if token.kind == "variable"]
    return len(set(asked)) == len(asked)  # one that comes twice is a condition


def _sign(token: Token) -> str:
    """One character for each kind of token; of other words none that the form knows."""
    if token.kind == "word":
        return "a" if token.text == "a" else _WORDS.get(token.text.upper(), "_")
    if token.kind == "mark":
        return "d" if token.text.isdecimal() else token.text[0] if token.text in ("{", "}", ".", "*") else "_"
    return _TERMS[token.kind]


# --- using -----------------------------------------------------------------------------------------------


def with_using(text: str, default_graphs: Sequence[str], named_graphs: Sequence[str]) -> str:
    """The update over these graphs (checked IRIs). Raises Problem 400 where it has WITH or USING itself."""
    if not default_graphs and not named_graphs:
        return text
    clauses = "".join(f"USING <{iri}> " for iri in default_graphs)
    clauses += "".join(f"USING NAMED <{iri}> " for iri in named_graphs)
    parts: list[str] = []
    done = level = 0
    found = list(tokens(text))
    for index, token in enumerate(found):
        if token.text == "{":
            level += 1
        elif token.text == "}":
            level -= 1
        elif level == 0 and token.is_word("USING", "WITH"):
            raise Problem(400, "the dataset is given twice", f"a USING or WITH clause beside {_names(default_graphs)}")
        elif level == 0 and token.is_word("WHERE"):
            parts.append(text[done : token.start])
            if index and found[index - 1].is_word("DELETE"):
                parts.append(_group(text, found, index + 1) + " ")
            parts.append(clauses)
            done = token.start
    return "".join([*parts, text[done:]])


def _group(text: str, found: list[Token], first: int) -> str:
    """The group in braces that begins at a token; to the end of the text if it is not closed."""
    level = 0
    for token in found[first:]:
        level += (token.text == "{") - (token.text == "}")
        if level == 0:
            return text[found[first].start : token.end]
    return text[found[first].start :] if first < len(found) else ""


def _names(default_graphs: Sequence[str]) -> str:
    return "using-graph-uri" if default_graphs else "using-named-graph-uri"


# --- querying --------------------------------------------------------------------------------------------


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
            union = operation.union
            return self.store.query(
                operation.text, base_iri=base, use_default_graph_as_union=union, custom_functions=FUNCTIONS
            )
        return self.store.query(
            operation.text,
            base_iri=base,
            default_graph=[NamedNode(iri) for iri in operation.default_graphs],
            named_graphs=[NamedNode(iri) for iri in operation.named_graphs],
            custom_functions=FUNCTIONS,
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
