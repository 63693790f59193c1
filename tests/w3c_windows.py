"""The W3C's query tests asked of windows: where the clauses of windows stand in a query, and its graphs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from pyoxigraph import NamedNode, Quad, Store, Triple
from w3c_suites import Evaluation, triples

SUITES: Final = (
    "aggregates",
    "bind",
    "csv-tsv-res",
    "exists",
    "json-res",
    "negation",
    "property-path",
    "subquery",
)

_TOKEN = re.compile(
    r"""(?P<skip>\"{3}(?:[^"\\]|\\.|"(?!""))*\"{3}|'{3}(?:[^'\\]|\\.|'(?!''))*'{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'
    |<[^<>"{}|^`\\\s]*>|\#[^\n]*|[?$:][\w-]+)|(?P<word>[A-Za-z_][\w-]*)|(?P<mark>[{}()])""",
    re.VERBOSE,
)


def places(text: str) -> tuple[int, int, int]:
    """Where the clauses of a dataset go, where the group of WHERE begins and ends."""
    depth, words, opened = 0, list[tuple[str, int]](), list[int]()
    for token in _TOKEN.finditer(text):
        if word := token["word"]:
            words.append((word.upper(), token.start()))
        elif token["mark"] in ("{", "("):
            if not depth and token["mark"] == "{":
                opened.append(token.start())
                before = words[-1] if words else ("", 0)
                if "CONSTRUCT" not in (w for w, _ in words) or before[0] == "WHERE" or len(opened) > 1:
                    at = before[1] if before[0] == "WHERE" else token.start()
                    return at, token.start(), _closing(text, token.start())
            depth += 1
        elif token["mark"]:
            depth -= 1
    raise ValueError(text)


def _closing(text: str, start: int) -> int:
    depth = 0
    for token in _TOKEN.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(token["mark"] or "", 0)
        if not depth:
            return token.start()
    return len(text)


def asked_of(text: str, clauses: str, window: str | None = None) -> str:
    """A query with FROM clauses; with `window` its pattern is asked of that window."""
    at, start, end = places(text)
    body = text[start + 1 : end] if window is None else f" WINDOW <{window}> {{{text[start + 1 : end]}\n}} "
    return f"{text[:at]}\n{clauses}\n{text[at : start + 1]}{body}{text[end:]}"


def named(case: Evaluation) -> list[tuple[str, list[Triple]]]:
    """The graphs of a test."""
    return [(iri, triples(path, iri)) for iri, path in case.graphs]


def knowledge(graphs: Iterable[tuple[str, list[Triple]]]) -> Store:
    """A knowledge base of named graphs; they are there when they are empty, too."""
    kb = Store()
    for iri, graph in graphs:
        kb.add_graph(NamedNode(iri))
        kb.extend(Quad(t.subject, t.predicate, t.object, NamedNode(iri)) for t in graph)
    return kb
