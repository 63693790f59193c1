"""Lints of a query that is run or registered: those of its text, and graphs that the knowledge base does not have.

A query may be legal and still answer nothing (semantics.md 2.2: an unknown graph is the empty graph, and a lint), so
each place where a query begins shows the same lints as `oxiseq check`.

In the flow: query, KB → **lints** → a warning of `oxiseq.run` and `store.register`, standard error of the command line,
the answer to a registration over HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from pyoxigraph import NamedNode

from oxiseq.engine.kb import KnowledgeBase
from oxiseq.grammar import Finding, load
from oxiseq.grammar.algebra import Span
from oxiseq.grammar.arguments import public
from oxiseq.grammar.errors import closest, lint_finding, one_line
from oxiseq.grammar.languages import AnyQuery
from oxiseq.languages.reads import reads_of
from oxiseq.languages.registry import language_for
from oxiseq.options.query_text import QueryText
from oxiseq.sources.unmet import local_name
from oxiseq.sources.warned import warn_caller

if TYPE_CHECKING:
    from oxiseq.mappings.declared import StreamMapping

MISSING: Final = "no-graph"
_SHOWN: Final = 10
_LOOKED_AT: Final = 2000
"""Graphs of the KB among which the nearest are looked for."""
_OURS: Final = "urn:oxiseq:"
"""Graphs that the loader makes begin so."""


@public
class LintWarning(UserWarning):
    """A query is legal and perhaps not what was meant; `Query.check()` and `oxiseq check` show the same.

    >>> import warnings
    >>> import oxiseq
    >>> text = "SELECT ?s FROM STREAM S <urn:s> WHERE { SEQ(A) DEFINE GPM A ON S { ?s ?p ?o FILTER(?o > '5') } }"
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     _ = oxiseq.run(text, {"S": []})
    >>> {each.category for each in told} == {oxiseq.LintWarning}
    True
    """


@public
class MissingGraphWarning(LintWarning):
    """A query reads a graph that the knowledge base does not have.

    >>> import warnings
    >>> import oxiseq
    >>> text = '''PREFIX : <http://example.org/> SELECT ?s FROM STREAM S <urn:s>
    ... WHERE { SEQ(A) DEFINE GPM A ON S { ?s :p ?o GRAPH :shops { ?s :q ?t } } }'''
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     _ = oxiseq.run(text, {"S": []}, kb="<urn:a> <urn:b> <urn:c> <http://example.org/shop> .")
    >>> told[0].category is oxiseq.MissingGraphWarning
    True
    """


def lints_of(query: QueryText, kb: KnowledgeBase | None, rules: Iterable[str] = ()) -> tuple[Finding, ...]:
    """What `check` finds and does not refuse, and graphs that `kb` does not have, if there is one. Raises KbError."""
    found = tuple(each for each in query.check() if each.severity == "lint")
    return found if kb is None else (*found, *missing_graphs(query.algebra, query.text, kb, rules))


def unmapped(query: AnyQuery, mappings: Mapping[str, StreamMapping | None]) -> Iterator[Finding]:
    """A lint for each property that the mapping of a stream does not make, if it makes one of a like name."""
    known = {iri: made for iri, each in mappings.items() if each is not None and (made := each.properties) is not None}
    if not known:  # of most streams
        return
    reads = reads_of(language_for(query).own(query)).properties
    for iri, made in known.items():
        for name in sorted(reads.get(iri, frozenset()) - made):
            by_local = {local_name(each): each for each in made}
            if (close := closest(local_name(name), by_local)) is not None:
                message = f"rows of <{iri}> have no property <{name}> by the mapping of the stream"
                yield lint_finding("unmapped", message, query.span, f"did you mean <{by_local[close]}>?")


def warn_of_lints(found: Iterable[Mapping[str, Any]]) -> None:
    """Warn the caller of each; `found`: their values (`Finding.to_json`)."""
    for lint in found:
        warn_caller(one_line(lint), MissingGraphWarning if lint["code"] == MISSING else LintWarning)


def missing_graphs(query: AnyQuery, text: str, kb: KnowledgeBase, rules: Iterable[str] = ()) -> tuple[Finding, ...]:
    """A lint for each graph that the query or its rules name and the KB does not have. Raises KbError."""
    asked = _asked(query, text)
    for rule in rules:
        asked = {**_asked(load(rule, "epsparql"), rule), **asked}
    missing = [(name, place) for name, place in asked.items() if not _has(kb, name)]
    if not missing:
        return ()
    there = _graphs(kb)
    return tuple(
        replace(lint_finding(MISSING, f"the knowledge base has no graph {name}", span, _hint(name, there)), text=of)
        for name, (span, of) in missing
    )


def _asked(query: AnyQuery, text: str) -> dict[NamedNode, tuple[Span, str]]:
    """The graphs named in GRAPH, FROM and FROM NAMED, in the order of the text: where, and in which text."""
    found = {name: (span, text) for name, span in reversed(tuple(language_for(query).graphs(query)))}
    return dict(sorted(found.items(), key=lambda each: each[1][0].start))


def _has(kb: KnowledgeBase, name: NamedNode) -> bool:
    return any(True for _ in kb.solutions(f"SELECT (1 AS ?there) WHERE {{ GRAPH {name} {{}} }} LIMIT 1"))


def _graphs(kb: KnowledgeBase) -> list[str]:
    found = kb.solutions(f"SELECT DISTINCT ?g WHERE {{ GRAPH ?g {{}} }} LIMIT {_LOOKED_AT}")
    return sorted(s[0].value for s in found if isinstance(s[0], NamedNode) and not s[0].value.startswith(_OURS))


def _hint(name: NamedNode, there: list[str]) -> str:
    if not there:
        return "it has no named graphs: load the facts into one, or leave out GRAPH if the language allows that"
    nearest = get_close_matches(name.value, there, _SHOWN, 0.0)
    more = f" and {len(there) - len(nearest)} more" if len(there) > len(nearest) else ""
    return f"it has {', '.join(f'<{each}>' for each in nearest)}{more}"
