"""The automaton with one condition of a place left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pyoxigraph import Variable

from oxiseq.engine.cea.plan import Atom, CeaPlan, words_of
from oxiseq.grammar.algebra import Expression
from oxiseq.grammar.ceql_algebra import AttributeWindow
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.render_ceql import render_predicate, render_window
from oxiseq.languages.ceql.reasons.places import Place, attributes_of
from oxiseq.languages.ceql.reasons.reached import before, recompiled


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A plan without one condition. `shown`: the attributes that it reads, of the completing event or, with `all`,
    of all events of the match."""

    kind: str
    text: str
    plan: CeaPlan
    shown: tuple[Variable, ...] = ()
    all: bool = False


def relaxations(plan: CeaPlan, place: Place) -> Iterator[Relaxation]:
    """Those of a `bare` plan at a place."""
    query, leads = plan.query, before(plan, place.letter)
    if query.window is not None and leads:
        shown = (query.window.attribute,) if isinstance(query.window, AttributeWindow) else ()
        unbounded = recompiled(replace(query, window=None), plan)
        yield Relaxation("window", render_window(query.window), unbounded, shown, True)
    at_once = [m for m in leads if plan.runner.positions.at_once[m] >> place.letter & 1]
    if at_once:
        yield Relaxation("contiguity", "`:`", _loosened(plan, place.letter))
    if plan.runner.strict and leads:
        yield Relaxation("strategy", "STRICT", recompiled(replace(query, selection=None), plan))
    if query.partition is not None:
        by = query.partition.by
        text = f"PARTITION BY {', '.join(f'[{a.value}]' for a in by)}"
        yield Relaxation("partition", text, recompiled(replace(query, partition=None), plan), by, True)
    for condition in place.conditions:
        text = f"{place.text}[{render_predicate(condition)}]"
        yield Relaxation("filter", text, _without(plan, place, condition), attributes_of(condition))


def _loosened(plan: CeaPlan, letter: int) -> CeaPlan:
    """`;` where `:` leads to the letter."""
    positions, bit = plan.runner.positions, 1 << letter
    later = tuple(late | (now & bit) for now, late in zip(positions.at_once, positions.later, strict=True))
    at_once = tuple(now & ~bit for now in positions.at_once)
    loose = replace(positions, at_once=at_once, later=later)
    return replace(plan, runner=replace(plan.runner, positions=loose))


def _without(plan: CeaPlan, place: Place, condition: Expression) -> CeaPlan:
    """A new atom for the letter, without the condition."""
    kept = tuple(c for c in place.conditions if c != condition)
    letters = list(plan.runner.positions.letters)
    letters[place.letter] = replace(letters[place.letter], predicates=kept)
    atoms = [plan.letters[atom] for atom in plan.runner.atom_of]
    atoms[place.letter] = Atom(place.type, kept)
    numbers: dict[Atom, int] = {}
    atom_of = tuple(numbers.setdefault(atom, len(numbers)) for atom in atoms)
    positions = replace(plan.runner.positions, letters=tuple(letters))
    runner = replace(plan.runner, positions=positions, atom_of=atom_of, words=words_of(len(numbers)))
    return replace(plan, letters=tuple(numbers), runner=runner)
