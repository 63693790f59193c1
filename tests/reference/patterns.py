"""A GPM on one event: a set of mappings (semantics.md 2.2).

A basic graph pattern is joined here, triple pattern by triple pattern. Any other pattern is asked of an
Oxigraph store that holds the event's graph as default graph and nothing else (and the KB's named graphs,
where GRAPH stands inside). Top-level FILTERs are always decided by `values`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyoxigraph import BlankNode, DefaultGraph, Quad, QuerySolutions, Store, Triple, Variable

from oxiseq.grammar.algebra import (
    Call,
    Exists,
    Expression,
    Filter,
    FunctionCall,
    Gpm,
    GraphPattern,
    Group,
    Term,
    TriplePattern,
)
from reference.local_times import FUNCTIONS
from reference.scopes import (
    asks_the_run,
    conditions_below,
    conjuncts,
    has_exists,
    holds_graph,
    inside,
    mentioned,
    mentioned_in,
    plainly_mentioned,
    shown,
)
from reference.sparql_text import group_text
from reference.values import boolean, holds, normal_term, normal_triple

Mu: TypeAlias = frozenset[tuple[Variable, Term]]
"""A mapping µ: the variables that it binds, each with its term."""

Omega: TypeAlias = frozenset[Mu]
"""A set of mappings."""


def join(left: Mu, right: Mu) -> Mu | None:
    """µ1 ∪ µ2, or None where they disagree on a shared variable."""
    bound = dict(left)
    return left | right if all(bound.get(v, t) == t for v, t in right) else None


def join_all(left: Omega, right: Omega) -> Omega:
    """Ω1 ⋈ Ω2."""
    joined = (join(a, b) for a in left for b in right)
    return frozenset(m for m in joined if m is not None)


@dataclass(frozen=True)
class Parts:
    """A GPM taken apart: P, P_D, the FILTERs it can decide alone, and those it cannot (stateful)."""

    gpm: Gpm
    pattern: Group
    kb: Group | None
    filters: tuple[Expression, ...]
    stateful: tuple[Expression, ...]
    needs_kb_inside: bool

    @property
    def variables(self) -> list[Variable]:
        """All that its mappings may bind, in order of appearance."""
        return shown(self.gpm.pattern)


def take_apart(gpm: Gpm, others: frozenset[Variable] = frozenset()) -> Parts:
    """GRAPH and FILTER at the top level are set apart; a filter with EXISTS stays in the pattern, unless it reads
    `others`, which GPMs bind that this one sees, or asks for more of the partial match."""
    own, graphs, conditions, joined = [], [], [], []
    foreign = others - set(shown(gpm.pattern))
    for element in gpm.pattern.elements:
        if isinstance(element, Filter):
            parts = conjuncts(element.condition)
            joined += [c for c in parts if has_exists(c) and (asks_the_run(c) or _all_mentioned(c) & foreign)]
            conditions += [c for c in parts if not has_exists(c)]
            own += [Filter(c) for c in parts if has_exists(c) and c not in joined]
        elif isinstance(element, GraphPattern):
            graphs.append(element)
        else:
            own.append(element)
    kb_only = set(shown(Group(tuple(graphs)))) - set(shown(Group(tuple(own))))
    nested = holds_graph(Group(tuple(own)))
    reads_kb = any(mentioned(c) & kb_only for c in conditions_below(Group(tuple(own))))
    if nested or reads_kb:
        whole = tuple(e for e in gpm.pattern.elements if not isinstance(e, Filter) or e in own)
        own = [*whole, *(e for e in own if isinstance(e, Filter) and e not in whole)]
        graphs = []
    visible = set(shown(gpm.pattern))
    stateful = (*(c for c in conditions if asks_the_run(c) or not mentioned(c) <= visible), *joined)
    return Parts(
        gpm,
        Group(tuple(own)),
        Group(tuple(graphs)) if graphs else None,
        tuple(c for c in conditions if c not in stateful),
        stateful,
        nested or reads_kb,
    )


def _all_mentioned(condition: Expression) -> set[Variable]:
    exists = [e for e in inside(condition) if isinstance(e, Exists)]
    return plainly_mentioned(condition).union(*(mentioned_in(e.pattern) for e in exists))


def with_exists_answered(e: Expression, graph: Sequence[Triple], kb: Store | None, mu: Mu) -> Expression:
    """The condition with true or false for each EXISTS, asked of the event's graph with µ substituted."""
    match e:
        case Exists(pattern, negated):
            return boolean(_exists(pattern, graph, kb, mu) is not negated)
        case Call(name, args):
            return Call(name, tuple(with_exists_answered(arg, graph, kb, mu) for arg in args))
        case FunctionCall(function, args, distinct):
            return FunctionCall(function, tuple(with_exists_answered(a, graph, kb, mu) for a in args), distinct)
        case _:
            return e


def _exists(pattern: Group, graph: Sequence[Triple], kb: Store | None, mu: Mu) -> bool:
    """The values of µ stand beside the EXISTS, so that SPARQL puts them into it."""
    used = {v: t for v, t in mu if v in mentioned_in(pattern)}
    blank = {v: t for v, t in used.items() if isinstance(t, BlankNode)}  # VALUES takes none
    plain = {v: t for v, t in used.items() if v not in blank}
    names = " ".join(str(v) for v in used) or "(1 AS ?one)"
    row = " ".join(str(t) for t in plain.values())
    values = f"VALUES ({' '.join(str(v) for v in plain)}) {{ ({row}) }}" if plain else ""
    store = _event_store(graph, kb if holds_graph(pattern) else None)
    text = f"SELECT {names} WHERE {{ {values} FILTER(EXISTS {group_text(pattern)}) }}"
    return any(True for _ in store.query(text, substitutions=blank, custom_functions=FUNCTIONS))


def answer_kb(parts: Parts, kb: Store | None) -> Omega:
    """⟦P_D⟧ on the KB, once; the identity where there is none."""
    if parts.kb is None:
        return frozenset([frozenset()])
    return _ask(kb if kb is not None else Store(), parts.kb)


def match_event(parts: Parts, graph: Sequence[Triple], kb_answer: Omega, kb: Store | None) -> Omega:
    """The GPM's mappings on one event, its own FILTERs applied."""
    found = match_pattern(parts.pattern, graph, kb if parts.needs_kb_inside else None)
    joined = join_all(found, kb_answer)
    return frozenset(m for m in joined if all(holds(f, dict(m)) for f in parts.filters))


def match_pattern(pattern: Group, graph: Sequence[Triple], kb: Store | None) -> Omega:
    """⟦P⟧ on one event's graph; `kb` only for a pattern that holds GRAPH."""
    if all(isinstance(e, TriplePattern) for e in pattern.elements):
        return join_patterns(pattern, graph)
    return _ask(_event_store(graph, kb), pattern)


def join_patterns(pattern: Group, graph: Iterable[Triple]) -> Omega:
    """A basic graph pattern: every way to map its triple patterns into the graph."""
    triples = {normal_triple(t) for t in graph}
    found: set[frozenset[tuple[Variable | BlankNode, Term]]] = {frozenset()}
    for element in pattern.elements:
        assert isinstance(element, TriplePattern)
        found = {
            bound | frozenset(more.items())
            for bound in found
            for triple in triples
            if (more := _agrees(element, triple, dict(bound))) is not None
        }
    return frozenset(frozenset((v, t) for v, t in m if isinstance(v, Variable)) for m in found)


def _agrees(
    pattern: TriplePattern, triple: Triple, bound: Mapping[Variable | BlankNode, Term]
) -> dict[Variable | BlankNode, Term] | None:
    """What the pattern binds more on this triple; None if it does not agree. Blank nodes are variables."""
    more: dict[Variable | BlankNode, Term] = {}
    places = zip((pattern.subject, pattern.predicate, pattern.object), triple, strict=True)
    for asked, given in places:
        assert not isinstance(given, Triple)
        if isinstance(asked, Variable | BlankNode):
            if bound.get(asked, more.get(asked, given)) != given:
                return None
            more[asked] = given
        elif normal_term(asked) != given:
            return None
    return more


def _event_store(graph: Iterable[Triple], kb: Store | None) -> Store:
    store = Store()
    if kb is not None:
        store.extend(q for q in kb if q.graph_name != DefaultGraph())
    store.extend(Quad(t.subject, t.predicate, t.object) for t in graph)
    return store


def _ask(store: Store, pattern: Group) -> Omega:
    """⟦pattern⟧ by the store, as a set over the visible variables."""
    names = shown(pattern)
    if not names:
        asked = store.query("ASK " + group_text(pattern), custom_functions=FUNCTIONS)
        return frozenset([frozenset()]) if asked else frozenset()
    text = f"SELECT {' '.join(str(v) for v in names)} WHERE {group_text(pattern)}"
    found = store.query(text, custom_functions=FUNCTIONS)
    assert isinstance(found, QuerySolutions)
    return frozenset(frozenset((v, normal_term(term)) for v in names if (term := row[v]) is not None) for row in found)
