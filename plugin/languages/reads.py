"""What a query of any language reads of its streams, as its algebra says it (sources/unmet.py)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from collections.abc import Sequence as Listing
from typing import Final

from pyoxigraph import Literal, NamedNode, Variable

from oxiseq.engine.events.row_graphs import RDF_TYPE
from oxiseq.grammar.algebra import (
    Aggregate,
    Call,
    Following,
    GraphPattern,
    PathNegated,
    PathPattern,
    Query,
    Repeat,
    Sequence,
    TimedPattern,
    TimeOp,
    TriplePattern,
    WindowPattern,
)
from oxiseq.grammar.ceql_algebra import CeqlQuery, EventType, holds_of
from oxiseq.grammar.checking.comparisons import AS_NUMBERS, is_number
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.functions import MIRRORED_ORDER
from oxiseq.grammar.languages import AnyQuery
from oxiseq.grammar.parts import parts
from oxiseq.grammar.rsp_algebra import RspQuery
from oxiseq.sources.unmet import ANY, Reads

_WEIGHED: Final = frozenset(["SUM", "AVG", "MIN", "MAX"])


def reads_of(query: AnyQuery, rules: Listing[EpQuery] = ()) -> Reads:
    """`rules`: of EP-SPARQL, which derive names from others."""
    if isinstance(query, CeqlQuery):
        return _of_tuples(query)
    names = defaultdict[str, set[str]](set)
    types = defaultdict[str, set[str]](set)
    for stream, pattern in (*_patterns(query), *((ANY, rule.where) for rule in rules)):
        for triple in parts(pattern, TriplePattern, (GraphPattern, WindowPattern)):
            if triple.predicate == RDF_TYPE and isinstance(triple.object, NamedNode):
                types[stream].add(triple.object.value)
            elif isinstance(triple.predicate, NamedNode):
                names[stream].add(triple.predicate.value)
        for path in parts(pattern, PathPattern, (GraphPattern, WindowPattern)):
            names[stream].update(each.value for each in parts(path.path, NamedNode, PathNegated))
    derived = [triple for each in (query, *rules) for triple in _made(each)]
    made = {each.predicate for each in derived}
    made_types = {each.object for each in derived if each.predicate == RDF_TYPE}
    compared = set(_compared(query))
    triples = parts(query, TriplePattern, GraphPattern)
    return Reads(
        {
            stream: frozenset(each) - {p.value for p in made if isinstance(p, NamedNode)}
            for stream, each in names.items()
        },
        {
            stream: frozenset(each) - {t.value for t in made_types if isinstance(t, NamedNode)}
            for stream, each in types.items()
        },
        frozenset(t.predicate.value for t in triples if t.object in compared and isinstance(t.predicate, NamedNode)),
        any(_follows(each) for kind in (Sequence, Repeat, Following, TimedPattern) for each in parts(query, kind)),
        not isinstance(query, Query),
        dict(query.prefixes).get("", "") if isinstance(query, Query | RspQuery | EpQuery) else "",
    )


def _follows(each: object) -> bool:
    return (
        bool(each.rest) if isinstance(each, Sequence) else not isinstance(each, TimedPattern) or each.op is TimeOp.SEQ
    )


def _patterns(query: AnyQuery) -> Iterator[tuple[str, object]]:
    """(stream, pattern): what is evaluated on the events of a stream, or of ANY."""
    match query:
        case Query():
            streams = {stream.name: stream.iri.value for stream in query.streams}
            yield from ((streams[gpm.stream], gpm.pattern) for gpm in query.gpms)
        case EpQuery():
            yield ANY, query.where
        case RspQuery():
            of = {window.name: window.stream.value for window in query.windows}
            yield from ((of[each.window], each.pattern) for each in query.events if each.window in of)
            for window in parts(query.body, WindowPattern):
                yield of.get(window.name, ANY) if isinstance(window.name, NamedNode) else ANY, window.pattern
            if None in of and not query.default_graphs:
                yield ANY, query.body.where


def _made(query: AnyQuery) -> Iterator[TriplePattern]:
    """Of the template of a rule, whose own results it may read."""
    if isinstance(query, EpQuery):
        yield from parts(query.form, TriplePattern)


def _compared(query: AnyQuery) -> Iterator[Variable]:
    """The variables that are compared by order or with numbers, or calculated with."""
    for call in parts(query, Call):
        numbers = any(map(is_number, call.args))
        others = any(isinstance(arg, Literal) and not is_number(arg) for arg in call.args)
        if (call.name in AS_NUMBERS.union(MIRRORED_ORDER) or (call.name in ("=", "!=") and numbers)) and not others:
            yield from (arg for arg in call.args if isinstance(arg, Variable))
    for total in parts(query, Aggregate):
        if total.name in _WEIGHED and isinstance(total.arg, Variable):
            yield total.arg


def _of_tuples(query: CeqlQuery) -> Reads:
    """Of CEQL: attributes and types are names of VOCAB, and events of one time have an order."""
    vocab = query.vocab or ""
    attributes: set[str] = set()
    compared: set[str] = set()
    for test in holds_of(query.formula):
        of = {id(call.args[0]) for call in parts(test.predicate, Call) if call.name == "."}
        attributes.update(v.value for v in parts(test.predicate, Variable) if id(v) not in of)
        for call in parts(test.predicate, Call):
            if call.name in MIRRORED_ORDER and any(isinstance(arg, Call) and arg.name == "." for arg in call.args):
                compared.update(v.value for arg in call.args for v in parts(arg, Variable) if id(v) not in of)
    if query.partition is not None:
        attributes.update(v.value for v in query.partition.by)
    types = {each.name for each in parts(query.formula, EventType)}
    return Reads(
        {ANY: frozenset(vocab + each for each in attributes)},
        {ANY: frozenset(vocab + each for each in types)},
        frozenset(vocab + each for each in compared),
        False,
        False,
        vocab,
    )
