"""What a CEQL query is compiled to, as plain facts, then as text, Graphviz or JSON.

The automaton is CORE's with a position for each event that the formula names: what an event there must satisfy, which
variables hold it, and which positions may come after it, at the very next event (`:`) or at any later one (`;`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from oxiseq.engine.cea.composed import not_composed
from oxiseq.engine.cea.listed import MOST_LISTED
from oxiseq.engine.cea.plan import CeaPlan
from oxiseq.engine.cea.positions import bits
from oxiseq.engine.cea.ranking import ranking_of
from oxiseq.grammar.ceql_algebra import CeqlQuery, EndOrder, Totals, aggregates
from oxiseq.grammar.render_ceql import (
    render_formula,
    render_groups,
    render_order,
    render_predicate,
    render_told,
    render_window,
)
from oxiseq.grammar.render_clauses import render_consumption, render_sample
from oxiseq.languages.explanation import Explanation
from oxiseq.pictures.drawing import Arrow, Drawing, Node


@dataclass(frozen=True, slots=True)
class AtomFacts:
    """The conditions on a single event, evaluated once for all positions that need them."""

    number: int
    type: str
    predicates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PositionFacts:
    """An event of the formula; `variables`: those of SELECT that hold it (none: the event is not shown)."""

    number: int
    atom: int
    variables: tuple[str, ...]
    start: bool
    final: bool
    at_once: tuple[int, ...]
    later: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CeqlExplanation(Explanation):
    """All of it."""

    formula: str
    runner: str
    """What finds the complex events, and why."""
    variables: tuple[str, ...]
    streams: dict[str, str]
    window: str
    strategy: str
    consumption: str
    partition: tuple[str, ...]
    limit: int | None
    offset: int
    order: str | None
    sample: str | None
    found: str | None
    """How those that ORDER BY chooses are found."""
    totals: str | None
    """SELECT with aggregates, and GROUP BY and HAVING."""
    counted: str | None
    """How the complex events that aggregates run over are counted."""
    atoms: tuple[AtomFacts, ...]
    positions: tuple[PositionFacts, ...]

    def __str__(self) -> str:
        return as_text(self)

    @property
    def drawing(self) -> Drawing:
        """The automaton: a box per event of the formula, `:` on the arrows to the very next event, `;` to any later."""
        nodes = [Node("start", ""), *map(self._node, self.positions)]
        arrows = [Arrow("start", f"p{p.number}") for p in self.positions if p.start]
        for p in self.positions:
            ways = dict.fromkeys(p.at_once, ":") | dict.fromkeys(p.later, ";")
            arrows += [Arrow(f"p{p.number}", f"p{after}", (op,)) for after, op in ways.items()]
        return Drawing(self.formula, nodes, arrows)

    def _node(self, position: PositionFacts) -> Node:
        atom = self.atoms[position.atom]
        names = ", ".join(name for name in position.variables if name != atom.type)
        return Node(f"p{position.number}", _condition(atom), position.final, names)

    @property
    def summary(self) -> tuple[str, ...]:
        return (self.formula, f"window: {self.window}, strategy: {self.strategy}, consumption: {self.consumption}")


def explain_ceql(plan: CeaPlan) -> CeqlExplanation:
    """The explanation of a plan."""
    query = plan.query
    return CeqlExplanation(
        render_formula(query.formula),
        "determinised sets, since no condition compares events of two variables",
        plan.variables,
        dict(zip((s.name for s in query.streams), plan.streams, strict=True)),
        "none" if query.window is None else render_window(query.window).removeprefix("WITHIN "),
        "ALL" if query.selection is None else query.selection.strategy.value,
        "NONE" if query.consumption is None else render_consumption(query.consumption).removeprefix("CONSUME BY "),
        () if query.partition is None else tuple(v.value for v in query.partition.by),
        None if query.limit is None else query.limit.count,
        0 if query.limit is None else query.limit.offset,
        None if query.order is None else render_order(query.order).removeprefix("ORDER BY "),
        None if query.sample is None else render_sample(query.sample).removeprefix("SAMPLE "),
        None if query.order is None else _found(plan, query.order),
        None if query.totals is None else ", ".join(map(render_told, query.totals.columns)),
        None if query.totals is None else _counted(plan, query.totals),
        tuple(
            AtomFacts(i, _short(atom.type, query), tuple(render_predicate(p) for p in atom.predicates))
            for i, atom in enumerate(plan.atoms)
        ),
        tuple(_position(plan, n) for n in range(len(plan.positions.letters))),
    )


def _found(plan: CeaPlan, order: EndOrder) -> str:
    listed = ranking_of(plan, order).listed
    if plan.query.sample is not None:
        return "of those that are drawn"
    if listed is not None:
        return f"{MOST_LISTED:,} at most are examined one by one, because {listed}"
    return "they are found on the compact set, the others are not listed"


def _counted(plan: CeaPlan, totals: Totals) -> str:
    groups = "".join(f", {line}" for line in render_groups(totals))
    return f"a row for each event at which complex events end{groups}; {_way(plan, totals)}"


def _way(plan: CeaPlan, totals: Totals) -> str:
    because = not_composed(plan)
    if because is None:
        return "they are counted by composed windows, none is listed"
    if plan.ambiguous and any(aggregate.arg is not None for aggregate in aggregates(totals)):
        listed = f"{MOST_LISTED:,} at most are examined one by one"
        return f"they are counted by visiting live nodes; where several variables may hold an event {listed}"
    return f"they are counted by visiting live nodes, none is listed, because {because}"


def _position(plan: CeaPlan, n: int) -> PositionFacts:
    positions = plan.positions
    held = tuple(v for i, v in enumerate(plan.variables) if plan.masks[n] >> i & 1)
    return PositionFacts(
        n,
        plan.atom_of[n],
        held,
        bool(positions.first >> n & 1),
        bool(positions.last >> n & 1),
        tuple(bits(positions.at_once[n])),
        tuple(bits(positions.later[n])),
    )


def _short(iri: str, query: CeqlQuery) -> str:
    return iri.removeprefix(query.vocab or "")


# --- for people -----------------------------------------------------------------------------------


def as_text(explanation: CeqlExplanation) -> str:
    """The whole explanation, for a terminal."""
    return "\n".join(_lines(explanation)) + "\n"


def _lines(e: CeqlExplanation) -> Iterator[str]:
    yield f"SELECT {', '.join(e.variables) if e.totals is None else e.totals}"
    yield e.formula
    yield f"runner: {e.runner}"
    yield f"window: {e.window}"
    yield f"strategy: {e.strategy}"
    yield f"consumption: {e.consumption}"
    if e.partition:
        yield f"partitions: by {', '.join(f'[{a}]' for a in e.partition)}"
    if e.limit is not None:
        behind = f", without the first {e.offset}" if e.offset else ""
        yield f"limit: {e.limit} for each completing event{behind}"
    if e.order is not None:
        yield f"order: {e.order}, among those that end at one event; {e.found}"
    if e.sample is not None:
        yield f"sample: {e.sample}, among those that end at one event"
    if e.counted is not None:
        yield f"aggregates: {e.counted}"
    yield from ["", "streams", *(f"  {name} <{iri}>" for name, iri in e.streams.items())]
    yield from ["", "atoms", *(f"  {a.number}: {_condition(a)}" for a in e.atoms)]
    yield from ["", "automaton"]
    yield f"  start → {_list(p.number for p in e.positions if p.start)}"
    for p in e.positions:
        final = ", a match" if p.final else ""
        yield f"  position {p.number}: atom {p.atom}, held by {', '.join(p.variables) or 'no variable'}{final}"
        if p.at_once:
            yield f"    at the very next event (:) → {_list(p.at_once)}"
        if p.later:
            yield f"    at any later event (;) → {_list(p.later)}"


def _condition(atom: AtomFacts) -> str:
    return f"{atom.type}[{' AND '.join(atom.predicates)}]" if atom.predicates else atom.type


def _list(numbers: Any) -> str:
    return ", ".join(map(str, numbers))
