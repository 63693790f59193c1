"""Another endpoint's answers to SELECT queries: JSON → solutions.

Blank nodes mean something within one answer only: they get labels that no other query's answer has, nor another answer
to the same query, but the same answer to it again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

from pyoxigraph import BlankNode, QueryBoolean, QueryResultsFormat, QuerySolutions, parse_query_results

from oxiseq.changes.operations import tokens
from oxiseq.engine.errors import KbError
from oxiseq.engine.kb import Solution
from oxiseq.engine.rdf import Guarded
from oxiseq.engine.standing import Question, Solutions, check_rows
from oxiseq.grammar.records import dataclass


def read_answer(query_text: str, body: bytes) -> Iterable[Solution]:
    """The solutions in JSON results. Raises KbError."""
    found = _parsed(body)
    if not isinstance(found, QuerySolutions):
        raise KbError("the knowledge base answers SELECT queries only")
    return _labelled(found, query_text, body) if b'"bnode"' in body else found


def read_rows(query_text: str, body: bytes, question: Question) -> Solutions:
    """The rows of an answer that is well-formed, in a question's columns; of ASK one without columns if it is true.
    Raises KbError, LimitError."""
    found = _parsed(body)
    if isinstance(found, QueryBoolean):
        return [()] * bool(found)
    known = {variable.value for variable in found.variables}
    names = [name if name in known else None for name in question.names]
    rows: Solutions = []
    for solution in read_answer(query_text, body):
        rows.append(tuple(None if name is None else solution[name] for name in names))
        check_rows(question, len(rows))
    return rows


def check_answer(query_text: str, body: bytes) -> None:
    """Raises KbError, and what pyoxigraph raises, for what is no answer to a SELECT or an ASK to its end."""
    if _asks_truth(query_text):
        if not isinstance(_parsed(body), QueryBoolean):
            raise KbError("the knowledge base answers an ASK query with solutions")
        return
    for _ in read_answer(query_text, body):
        pass


def _parsed(body: bytes) -> QuerySolutions | QueryBoolean:
    try:
        Guarded(None, None).check(body)
        return parse_query_results(body, QueryResultsFormat.JSON)
    except (SyntaxError, ValueError, OSError) as error:
        raise KbError(f"the knowledge base's answer cannot be read: {error}") from error


def _asks_truth(query_text: str) -> bool:
    words = (token for token in tokens(query_text) if token.kind == "word")
    first = next((word for word in words if not word.is_word("PREFIX", "BASE")), None)
    return first is not None and first.is_word("ASK")


def _labelled(found: QuerySolutions, query_text: str, body: bytes) -> Iterator[Solution]:
    scope = hashlib.blake2b(body, digest_size=8, key=hashlib.blake2b(query_text.encode()).digest()).hexdigest()
    fresh: dict[BlankNode, BlankNode] = {}
    names = [variable.value for variable in found.variables]
    for solution in found:
        terms: list[Any] = list(solution)
        for i, term in enumerate(terms):
            if isinstance(term, BlankNode):
                terms[i] = fresh.setdefault(term, BlankNode(f"u{scope}x{len(fresh)}"))
        yield _Labelled(terms, names)


@dataclass(frozen=True, slots=True)
class _Labelled:
    """A solution, by place or by name."""

    terms: list[Any]
    names: list[str]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.terms)

    def __getitem__(self, key: int | str) -> Any:
        return self.terms[key if isinstance(key, int) else self.names.index(key)]
