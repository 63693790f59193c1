"""Variants of a CEQL query's automaton: with another last place, or without a condition of a place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pyoxigraph import Variable

from oxiseq.engine.cea.plan import Atom, CeaPlan, compile_ceql, words_of
from oxiseq.grammar.algebra import Expression, Limit
from oxiseq.grammar.ceql.texts import render_predicate, render_window
from oxiseq.grammar.ceql_algebra import AttributeWindow, CeqlQuery
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import conjuncts, expression_variables
from oxiseq.languages.reasons.why import WhyCondition


@dataclass(frozen=True, slots=True)
class LetterPlace:
    """A letter of the automaton: `text` names it, no other has that name; `conditions` are all evaluated on one
    event. `after`: the letters that it may follow."""

    letter: int
    text: str
    type: str
    conditions: tuple[Expression, ...]
    after: tuple[int, ...]


def places(plan: CeaPlan) -> tuple[LetterPlace, ...]:
    """One per letter, in the formula's order."""
    vocab, positions = plan.query.vocab or "", plan.runner.positions
    found: list[LetterPlace] = []
    seen: set[str] = set()
    for n, letter in enumerate(positions.letters):
        names = sorted(letter.names - {letter.type})
        text = f"{letter.type} AS {', '.join(names)}" if names else letter.type
        if text in seen:
            text = f"{text} (place {n + 1})"
        seen.add(text)
        conditions = tuple(dict.fromkeys(c for p in letter.predicates for c in conjuncts(p)))
        leads = (m for m in range(len(positions.letters)) if (positions.at_once[m] | positions.later[m]) >> n & 1)
        found.append(LetterPlace(n, text, vocab + letter.type, conditions, tuple(leads)))
    return tuple(found)


def bare(plan: CeaPlan, limit: int) -> CeaPlan:
    """Without CONSUME BY and choosing strategies, at most `limit` for each completing event. STRICT stays, as does what
    SELECT keeps with it, since it is about these events; else all variables are kept, so that they can be shown."""
    query = replace(plan.query, consumption=None, limit=Limit(limit), order=None, sample=None)
    if not plan.runner.strict:
        query = replace(query, selection=None, columns=None)
    return recompiled(query, plan)


def recompiled(query: CeqlQuery, plan: CeaPlan) -> CeaPlan:
    """The plan of a variant of a plan's query."""
    return compile_ceql(query, dict(zip((s.name for s in plan.query.streams), plan.streams, strict=True)))


def ending_at(plan: CeaPlan, place: LetterPlace, *, alone: bool = False) -> CeaPlan:
    """With another last letter, which is `alone` or ends the formula as far as it leads there."""
    last = 1 << place.letter
    positions = replace(plan.runner.positions, last=last)
    positions = replace(positions, first=last) if alone else positions
    return replace(plan, runner=replace(plan.runner, positions=positions))


def with_conditions(plan: CeaPlan, place: LetterPlace, kept: tuple[Expression, ...]) -> CeaPlan:
    """A new atom for the letter, with these of its conditions."""
    letters = list(plan.runner.positions.letters)
    letters[place.letter] = replace(letters[place.letter], predicates=kept)
    atoms = [plan.letters[atom] for atom in plan.runner.atom_of]
    atoms[place.letter] = Atom(place.type, kept)
    numbers: dict[Atom, int] = {}
    atom_of = tuple(numbers.setdefault(atom, len(numbers)) for atom in atoms)
    positions = replace(plan.runner.positions, letters=tuple(letters))
    runner = replace(plan.runner, positions=positions, atom_of=atom_of, words=words_of(len(numbers)))
    return replace(plan, letters=tuple(numbers), runner=runner)


def conditions(plan: CeaPlan, place: LetterPlace) -> Iterator[WhyCondition]:
    """Those of a place, each left out of a `bare` plan that ends there."""
    for condition in _conditions(plan, place):
        yield replace(condition, variant=ending_at(condition.variant, place))


def _conditions(plan: CeaPlan, place: LetterPlace) -> Iterator[WhyCondition]:
    query, positions = plan.query, plan.runner.positions
    if query.window is not None and place.after:
        shown = (query.window.attribute.value,) if isinstance(query.window, AttributeWindow) else ()
        yield WhyCondition("window", render_window(query.window), recompiled(replace(query, window=None), plan), shown)
    if any(positions.at_once[m] >> place.letter & 1 for m in place.after):
        yield WhyCondition("contiguity", "`:`", _loosened(plan, place.letter))
    if plan.runner.strict and place.after:
        yield WhyCondition("strategy", "STRICT", recompiled(replace(query, selection=None), plan))
    if query.partition is not None:
        text = f"PARTITION BY {', '.join(f'[{a.value}]' for a in query.partition.by)}"
        loose = recompiled(replace(query, partition=None), plan)
        yield WhyCondition("partition", text, loose, names(query.partition.by))
    for condition in place.conditions:
        loose = with_conditions(plan, place, tuple(c for c in place.conditions if c != condition))
        read = names(expression_variables(condition))
        yield WhyCondition("filter", f"{place.text}[{render_predicate(condition)}]", loose, tuple(sorted(read)))


def _loosened(plan: CeaPlan, letter: int) -> CeaPlan:
    """`;` where `:` leads to the letter."""
    positions, bit = plan.runner.positions, 1 << letter
    later = tuple(late | (now & bit) for now, late in zip(positions.at_once, positions.later, strict=True))
    at_once = tuple(now & ~bit for now in positions.at_once)
    return replace(plan, runner=replace(plan.runner, positions=replace(positions, at_once=at_once, later=later)))


def names(attributes: Sequence[Variable] | frozenset[Variable]) -> tuple[str, ...]:
    return tuple(attribute.value for attribute in attributes)
