"""What an EP-SPARQL query is compiled to: operators, what each keeps, rules; as text, Graphviz, JSON, a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from oxiseq.engine.flow.epsparql.anew import kept_for
from oxiseq.engine.flow.epsparql.lowering import Lowered, explained
from oxiseq.engine.flow.epsparql.query import IntervalPlan
from oxiseq.engine.flow.epsparql.relations import NOW, PAST
from oxiseq.engine.flow.explain import Step, long, steps
from oxiseq.engine.flow.plan import Arrange, Closure, Distinct, Given, inputs
from oxiseq.engine.flow.times import NEVER
from oxiseq.engine.run.family import why_not_alike
from oxiseq.engine.sharing.member import why_unequal
from oxiseq.grammar.algebra import Construct
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.render_sparql import SparqlWriter
from oxiseq.languages.explanation import WITH_EQUALS, Explanation
from oxiseq.pictures.drawing import Arrow, Drawing, Node

_UNSEEN: Final = frozenset(
    ("columns", "arranged by", "consolidate", "once", "distinct", "sometime", "hull", "rows", "timed")
)
"""Operators that people do without."""


@dataclass(frozen=True, slots=True)
class PatternFacts:
    """Patterns with common operators, inputs first: a query's, or those of the rules of a stratum. roots: the numbers
    of those that have their solutions."""

    operators: tuple[Step, ...]
    roots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StratumFacts:
    """Rules, numbered from 1, that are answered together; makes: by rule the triples of its template."""

    rules: tuple[int, ...]
    recursive: bool
    makes: tuple[tuple[str, ...], ...]
    pattern: PatternFacts


@dataclass(frozen=True, slots=True)
class IntervalExplanation(Explanation):
    """All of it."""

    form: str
    columns: tuple[str, ...]
    streams: tuple[str, ...]
    into: str | None
    consumption: str
    instants: str
    memory: str
    shares: str
    strata: tuple[StratumFacts, ...]
    pattern: PatternFacts

    def __str__(self) -> str:
        return "\n".join(_lines(self)) + "\n"

    @property
    def drawing(self) -> Drawing:
        """Operators from left to right, what each keeps below its name; rules have networks of their own."""
        nodes, arrows = list[Node](), list[Arrow]()
        for stratum in self.strata:
            for rule, root in zip(stratum.rules, stratum.pattern.roots, strict=True):
                _draw(stratum.pattern, root, Node(f"rule{rule}", f"rule {rule}", True), nodes, arrows)
        _draw(self.pattern, self.pattern.roots[0], Node("answers", self.form, True), nodes, arrows)
        return Drawing(f"{self.form}: its operators", nodes, arrows, network=True)

    @property
    def summary(self) -> tuple[str, ...]:
        told = (f"{name}: {getattr(self, name)}" for name in ("instants", "memory", "shares"))
        return (f"streams: {' '.join(self.streams)}", *told)


def explain_intervals(plan: IntervalPlan) -> IntervalExplanation:
    """The explanation of a plan."""
    strata = []
    for stratum in plan.strata:
        rules = [plan.rules[number] for number in stratum.rules]
        numbers, made = tuple(number + 1 for number in stratum.rules), tuple(map(_made, rules))
        strata.append(StratumFacts(numbers, stratum.recursive, made, _pattern(rules, stratum.recursive)))
    return IntervalExplanation(
        type(plan.query.form).__name__.upper(),
        tuple(v.value for v in plan.variables),
        plan.streams,
        plan.feeds,
        _consumption(plan),
        _instants(plan),
        _memory(plan),
        _sharing(plan),
        tuple(strata),
        _pattern([plan.query], False),
    )


def _pattern(queries: Sequence[EpQuery], recursive: bool) -> PatternFacts:
    lowered, called = explained(queries, recursive)
    names = dict(zip(lowered.roots, called, strict=True))
    asked = {name: " ".join(content.asked.split()) for name, content in lowered.timeless}
    return PatternFacts(
        tuple(_told(step, asked) for step in steps(lowered.plan, names, dict(queries[0].prefixes))), lowered.roots
    )


def _told(step: Step, asked: Mapping[str, str]) -> Step:
    """What rows without a time are."""
    if step.what != "rows" or step.detail[0] not in asked:
        return step
    question = asked[step.detail[0]]
    what = f"knowledge {question}" if question else "rows without a time"
    return Step(step.number, step.inputs, what, (), step.columns, step.keeps)


def _sharing(plan: IntervalPlan) -> str:
    why = why_unequal(plan)
    if why is not None:
        return f"nothing: {why}"
    why = why_not_alike(plan)
    if why is not None:
        return f"{WITH_EQUALS}; nothing with others: {why}"
    return (
        f"{WITH_EQUALS}; one plan with those that differ in constants of triple patterns and expressions only, once "
        "all their rows are equal that do not depend on these constants"
    )


def _made(rule: EpQuery) -> tuple[str, ...]:
    """The triples of a rule's template."""
    assert isinstance(rule.form, Construct)
    return tuple(SparqlWriter(dict(rule.prefixes)).template(rule.form))


def _instants(plan: IntervalPlan) -> str:
    if not plan.one_by_one:
        return "many at a time"
    if plan.recursive:
        return "one by one, to the rules' fixpoint"
    return "one by one, as rules make blank nodes"


def _memory(plan: IntervalPlan) -> str:
    """How far back what is kept reaches."""
    longest, looked = -1, False
    for lowered in plan.plans:
        found, for_ever = _kept(lowered)
        longest, looked = max(longest, found), looked or for_ever
    if longest >= NEVER:
        return "grows with the stream: without a bound on getDURATION() something is kept for ever"
    kept = f"events so far {long(longest)}" if longest > 0 else "an instant"
    return f"{kept}, and for ever what MINUS and EXISTS may find, each combination once" if looked else kept


def _kept(lowered: Lowered) -> tuple[int, bool]:
    """How long operators keep rows of streams; whether any keeps that something has happened."""
    streamed, longest, looked = set[int](), -1, False
    for place, form in enumerate(lowered.plan.forms):
        if (isinstance(form, Given) and form.name in (NOW, PAST)) or not streamed.isdisjoint(inputs(form)):
            streamed.add(place)
        if place in streamed and isinstance(form, Arrange | Closure):
            if isinstance(form, Arrange) and isinstance(lowered.plan.forms[form.child], Distinct):
                looked = True
            else:
                longest = max(longest, kept_for(form))
    return longest, looked


def _consumption(plan: IntervalPlan) -> str:
    uses = plan.answered.uses
    if uses is None:
        return "none"
    which = "last" if uses.recent else "first"
    chosen = f", of which a SEQ takes the {which} second operand, and for it the {which} first one"
    return f"triples of an answer are not used again{chosen if uses.choices else ''}"


# --- for people -----------------------------------------------------------------------------------


def _lines(e: IntervalExplanation) -> Iterator[str]:
    yield f"{e.form} {' '.join(f'?{name}' for name in e.columns)}".rstrip()
    yield f"streams: {' '.join(e.streams)}"
    if e.into is not None:
        yield f"into stream: {e.into}"
    if e.consumption != "none":
        yield f"consumption: {e.consumption}"
    yield from (f"{name}: {getattr(e, name)}" for name in ("instants", "memory", "shares"))
    for stratum in e.strata:
        yield f"stratum: rules {', '.join(map(str, stratum.rules))}{', recursive' if stratum.recursive else ''}"
    for stratum in e.strata:
        for rule, makes, root in zip(stratum.rules, stratum.makes, stratum.pattern.roots, strict=True):
            yield f"rule {rule}, makes {' . '.join(makes)}:"
            yield from _tree(stratum.pattern.operators, root, 1, set())
    yield "query:"
    yield from _tree(e.pattern.operators, e.pattern.roots[0], 1, set())


def _tree(operators: Sequence[Step], place: int, depth: int, known: set[int]) -> Iterator[str]:
    """An operator and those below it, as far as they have not been shown."""
    step = operators[place]
    if step.what not in _UNSEEN:
        note = f"   [{_note(step)}]" if _note(step) else ""
        again = place in known and step.inputs
        yield f"{'  ' * depth}{_label(step)}{'   (as above)' if again else note}"
        if again:
            return
        known.add(place)
        depth += 1
    for child in step.inputs:
        yield from _tree(operators, child, depth, known)


def _label(step: Step) -> str:
    return " ".join((step.what, *step.detail))


def _note(step: Step) -> str:
    """What it keeps for some time."""
    return f"keeps {step.keeps}" if " for " in step.keeps else ""


def _draw(pattern: PatternFacts, root: int, last: Node, nodes: list[Node], arrows: list[Arrow]) -> None:
    """A pattern's operators that people see, each behind its inputs, and what is made of them."""
    ahead: list[list[str]] = []
    for step in pattern.operators:
        before = list(dict.fromkeys(name for child in step.inputs for name in ahead[child]))
        if step.what not in _UNSEEN:
            name = f"{last.name}_{step.number}"
            nodes.append(Node(name, _label(step), note=_note(step)))
            arrows += [Arrow(each, name) for each in before]
            before = [name]
        ahead.append(before)
    arrows += [Arrow(each, last.name) for each in ahead[root]]
    nodes.append(last)
