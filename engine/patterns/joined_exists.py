"""EXISTS of stateful FILTERs, evaluated by Oxigraph: an event's graph and the values of the joined mapping.

In the flow: a pair of a row and a partial match → **question** → true or false. A row says of which event it is by
a number that holds for one batch. The events concerned are put into a scratch store when they are first
needed; the KB's graphs are beside them if a pattern names some. It is the slow and exact way: a query per distinct
question, some 0.1 ms each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from pyoxigraph import BlankNode, Literal, NamedNode, QuerySolutions, RdfFormat, Store, Variable, parse

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.expressions.exists import Ids, graph_of
from oxiseq.engine.expressions.times import FUNCTIONS
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.patterns.kb_graphs import CopiedGraphs, KbGraphs
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Exists, GraphPattern
from oxiseq.grammar.render import render_group
from oxiseq.grammar.render_sparql import base_clause
from oxiseq.grammar.scope import nested_elements


class ExistsMatcher:
    """Answers the EXISTS of a query's stateful filters on the batches that it is shown."""

    def __init__(self, tests: Sequence[Exists], terms: TermDictionary, kb: KnowledgeBase | None) -> None:
        self._terms = terms
        named = graphs_of(tests)
        self.graphs = KbGraphs(kb, named, terms) if named else None
        """The KB's graphs that patterns name, if they name any."""
        self._texts: dict[Exists, str] = {}
        self.want(tests)
        self._batches: tuple[EventBatch, ...] = ()
        self.first: list[int] = []
        """By stream the number of its first event."""
        self._copied = CopiedGraphs(Store())
        self._store = self._copied.store
        self._loaded: set[int] = set()

    def want(self, tests: Iterable[Exists]) -> None:
        """These are asked from now on; they name no other graphs."""
        self._texts = {test: self._texts.get(test) or _text(test) for test in tests}

    def begin(self, batches: Sequence[EventBatch]) -> None:
        """From now on numbers are those of these batches, one per stream."""
        self._batches = tuple(batches)
        self.first = [first_event(batches, stream) for stream in range(len(batches) + 1)]
        if self.graphs is not None:
            self._copied = self.graphs.now
            self._store = self._copied.store

    def end(self) -> None:
        """Between batches nothing is kept."""
        for number in self._loaded:
            self._store.remove_graph(_name(number))
        self._loaded.clear()
        self._batches = ()

    def ask(self, test: Exists, ids: Ids) -> bool:
        """Whether it holds; of `ids` it reads the values that it is given and the number of its event."""
        number = ids[graph_of(test.gpm)]
        if number not in self._loaded:
            self._load(number)
        given = {v: self._term(i) for v in test.given or () if (i := ids.get(v, 0))}
        found = self._store.query(
            _with_literals(self._texts[test], given),
            default_graph=_name(number),
            substitutions={v: term for v, term in given.items() if not isinstance(term, Literal)},
            custom_functions=FUNCTIONS,
        )
        assert isinstance(found, QuerySolutions)  # it is a SELECT
        return any(True for _ in found) is not test.negated

    def _load(self, number: int) -> None:
        stream = int(np.searchsorted(self.first, number, "right")) - 1
        batch, event = self._batches[stream], number - self.first[stream]
        low, high = int(batch.offset[event]), int(batch.offset[event + 1])
        triples = zip(*(ids[low:high].tolist() for ids in (batch.subject, batch.predicate, batch.object)), strict=True)
        name, text = _name(number), self._terms.text
        lines = "\n".join(f"{text(s)} {text(p)} {text(o)} {name} ." for s, p, o in triples)
        self._store.add_graph(name)
        self._store.extend(parse(lines, RdfFormat.N_QUADS))
        self._loaded.add(number)

    def _term(self, i: int) -> Term:
        """A term's form in the store: the KB's blank nodes have labels of their own there."""
        label = self._copied.labels.get(i)
        return self._terms.term(i) if label is None else BlankNode(label)


def _with_literals(text: str, given: Mapping[Variable, Term]) -> str:
    """The question with its literals in VALUES: what Oxigraph substitutes itself it compares as a term by `=`."""
    literals = {v: term for v, term in given.items() if isinstance(term, Literal)}
    if not literals:
        return text
    values = f"VALUES ({' '.join(map(str, literals))}) {{ ({' '.join(map(str, literals.values()))}) }}"
    return text.replace("WHERE {", f"WHERE {{ {values}", 1)


def _name(number: int) -> NamedNode:
    return NamedNode(f"urn:oxiseq:event:{number}")


def first_event(batches: Sequence[EventBatch], stream: int) -> int:
    """The number of a stream's first event in these batches."""
    return 1 + sum(map(len, batches[:stream]))


def graphs_of(tests: Iterable[Exists]) -> tuple[NamedNode, ...]:
    """The graphs of the KB that they name; the checks refuse GRAPH ?g here."""
    found = (e.name for test in tests for e in nested_elements(test.pattern) if isinstance(e, GraphPattern))
    return tuple(dict.fromkeys(name for name in found if isinstance(name, NamedNode)))


def _text(test: Exists) -> str:
    names = " ".join(f"?{v.value}" for v in test.given or ()) or "(1 AS ?oxiseq_one)"
    return f"{base_clause(test.pattern)}SELECT {names} WHERE {{ FILTER(EXISTS {render_group(test.pattern)}) }}"
