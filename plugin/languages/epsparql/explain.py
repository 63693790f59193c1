"""What an EP-SPARQL query is compiled to: operators, what each keeps, rules; as text, Graphviz, JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyoxigraph import Literal, NamedNode, Variable

from oxiseq.engine.flow.epsparql.algebra import (
    ClosurePlan,
    ExistsTest,
    ExtendPlan,
    FilterPlan,
    JoinPlan,
    MinusPlan,
    OptionalPlan,
    Plan,
    ProjectPlan,
    TablePlan,
    TestPlan,
    TimelessPlan,
    TriplePlan,
    UnionPlan,
    below,
    everything,
    is_timeless,
)
from oxiseq.engine.flow.epsparql.query import IntervalPlan
from oxiseq.engine.flow.epsparql.rows import NEVER, Column
from oxiseq.engine.flow.explain import Step
from oxiseq.engine.run.family import why_not_alike
from oxiseq.engine.sharing.equal import why_unequal
from oxiseq.grammar.algebra import Construct, Expression, TimeOp
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.render_clauses import amount
from oxiseq.grammar.render_sparql import SparqlWriter
from oxiseq.grammar.terms import RDF_TYPE
from oxiseq.languages.explanation import WITH_EQUALS, Explanation, network, operator_lines
from oxiseq.pictures.drawing import Arrow, Drawing, Node


@dataclass(frozen=True, slots=True)
class RuleFacts:
    """A rule: the triples that it makes, and its operators."""

    rule: int
    makes: tuple[str, ...]
    operators: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class StratumFacts:
    """Rules that are answered together."""

    rules: tuple[int, ...]
    recursive: bool


@dataclass(frozen=True, slots=True)
class IntervalExplanation(Explanation):
    """All of it; operators have their inputs before them."""

    form: str
    columns: tuple[str, ...]
    streams: tuple[str, ...]
    into: str | None
    consumption: str
    instants: str
    memory: str
    shares: str
    rules: tuple[RuleFacts, ...]
    strata: tuple[StratumFacts, ...]
    operators: tuple[Step, ...]

    def __str__(self) -> str:
        return "\n".join(_lines(self)) + "\n"

    @property
    def drawing(self) -> Drawing:
        """Operators from left to right; rules have networks of their own."""
        nodes: list[Node] = []
        arrows: list[Arrow] = []
        each = [(f"rule{rule.rule}", f"rule {rule.rule}", rule.operators) for rule in self.rules]
        for name, title, operators in (*each, ("answers", self.form, self.operators)):
            *_, last = network(operators, nodes, arrows, f"{name}_")
            nodes.append(Node(name, title, True))
            arrows += [Arrow(before, name) for before in last]
        return Drawing(f"{self.form}: its operators", nodes, arrows, network=True)

    @property
    def summary(self) -> tuple[str, ...]:
        told = f"instants: {self.instants}", f"memory: {self.memory}", f"shares: {self.shares}"
        return (f"streams: {' '.join(self.streams)}", *told)


def explain_intervals(plan: IntervalPlan) -> IntervalExplanation:
    """The explanation of a plan."""
    rules = (
        RuleFacts(number, _made(rule), _operators(rule, derived.plan))
        for number, (rule, derived) in enumerate(zip(plan.rules, plan.derived, strict=True), 1)
    )
    strata = (StratumFacts(tuple(number + 1 for number in each.rules), each.recursive) for each in plan.strata)
    return IntervalExplanation(
        type(plan.query.form).__name__.upper(),
        tuple(v.value for v in plan.variables),
        tuple(plan.streams),
        plan.feeds,
        _consumption(plan),
        _instants(plan),
        _memory(plan),
        _sharing(plan),
        tuple(rules),
        tuple(strata),
        _operators(plan.query, plan.answered.plan),
    )


def _operators(query: EpQuery, plan: Plan) -> tuple[Step, ...]:
    """An operator and those below it, inputs first."""
    explainer, found = _Explainer(query), list[Step]()

    def add(each: Plan) -> int:
        inputs = tuple(map(add, below(each)))
        keeps = "; ".join(explainer.keeps(each))
        detail = ("", f"keeps {keeps}") if keeps else ()
        found.append(Step(len(found), inputs, explainer.name(each), detail, (), keeps))
        return len(found) - 1

    add(plan)
    return tuple(found)


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
    operators = [operator for pattern in plan.plans for operator in everything(pattern)]
    longest = max((_reach(operator) for operator in operators), default=-1)
    looked = any(isinstance(operator, MinusPlan | TestPlan) and _once(operator) for operator in operators)
    if longest >= NEVER:
        return "grows with the stream: without a bound on getDURATION() something is kept for ever"
    kept = f"events so far {_long(longest)}" if longest >= 0 else "an instant"
    return f"{kept}, and for ever what MINUS and EXISTS may find, each combination once" if looked else kept


def _reach(plan: Plan) -> int:
    """How long an operator keeps what has come; negative for an instant, or nothing."""
    match plan:
        case JoinPlan(TimeOp.EQUALS) | OptionalPlan(TimeOp.EQUALSOPTIONAL):
            return -1
        case JoinPlan(_, left, right):
            return -1 if is_timeless(left) or is_timeless(right) else plan.limit
        case OptionalPlan(_, _, other):
            return -1 if is_timeless(other) else plan.limit
        case ClosurePlan(step):
            return -1 if is_timeless(step) else plan.limit
        case TestPlan(_, test) if not _once(plan):
            return test.limit
    return -1


def _consumption(plan: IntervalPlan) -> str:
    uses = plan.answered.uses
    if uses is None:
        return "none"
    which = "last" if uses.recent else "first"
    chosen = f", of which a SEQ takes the {which} second operand, and for it the {which} first one"
    return f"triples of an answer are not used again{chosen if uses.choices else ''}"


class _Explainer:
    def __init__(self, query: EpQuery) -> None:
        self._write = SparqlWriter(dict(query.prefixes))

    def name(self, plan: Plan) -> str:
        """What it does, in a line."""
        match plan:
            case TriplePlan(places, but=but):
                without = f" but {', '.join(self.place(p) for p in but)}" if but else ""
                subject, verb, target = places
                type_ = "a" if verb == RDF_TYPE else self.place(verb)
                return f"triples {self.place(subject)} {type_} {self.place(target)}{without}"
            case TimelessPlan(asked=asked):
                return "knowledge " + " ".join(asked.split()) if asked else "rows without a time"
            case TablePlan(_, table):
                return f"constants of {len(table.rows)} queries"
            case JoinPlan(op):
                return f"{'join' if op is None else op.value}{self.on(plan.left, plan.right)}{_within(plan.limit)}"
            case OptionalPlan(op, main, other):
                return f"{'OPTIONAL' if op is None else op.value}{self.on(main, other)}{self.asking(plan)}"
            case MinusPlan(main, other):
                return "MINUS" + self.on(main, other)
            case TestPlan(_, test):
                return self.exists(test)
            case UnionPlan():
                return "UNION"
            case FilterPlan(_, conditions):
                return "filter " + ", ".join(self._write.expression(c) for c in conditions)
            case ExtendPlan(_, expression, columns):
                return f"bind {self._write.expression(expression)} AS {self.place(columns[-1])}"
            case ProjectPlan():
                return "columns, each row once" if plan.distinct else "columns"
            case ClosurePlan():
                return "one step or more" + _within(plan.limit)

    def place(self, place: Column | NamedNode | Literal) -> str:
        return self._write.term(place) if isinstance(place, Variable | NamedNode | Literal) else "[]"

    def on(self, left: Plan, right: Plan) -> str:
        shared = [f"?{c.value}" for c in left.columns if c in right.columns and isinstance(c, Variable)]
        if shared:
            return " on " + " ".join(shared)
        return "" if any(c in right.columns for c in left.columns) else " of everything with everything"

    def asking(self, plan: OptionalPlan) -> str:
        return self.conditions(plan.conditions, plan.tests) + _within(plan.limit)

    def exists(self, test: ExistsTest) -> str:
        return ("EXISTS" if test.wanted else "NOT EXISTS") + self.conditions(test.conditions, test.tests)

    def conditions(self, conditions: Iterable[Expression], tests: Iterable[ExistsTest]) -> str:
        said = [*map(self._write.expression, conditions), *(f"{self.exists(t)} of an input below" for t in tests)]
        return " if " + ", ".join(said) if said else ""

    def keeps(self, plan: Plan) -> Iterator[str]:
        """What it remembers of what has come."""
        match plan:
            case JoinPlan(None, left, right):
                sides = [
                    (name, one)
                    for name, one, other in (("first", left, right), ("second", right, left))
                    if not is_timeless(other)
                ]
                timed = [name for name, one in sides if not is_timeless(one)]
                if timed:
                    yield f"{' and '.join(timed)}{_for(plan.limit)}"
                yield from (f"{name}, which has no time" for name, one in sides if is_timeless(one))
            case JoinPlan(TimeOp.SEQ):
                yield f"first{_for(plan.limit)}"
            case JoinPlan() | OptionalPlan(TimeOp.EQUALSOPTIONAL):
                yield "an instant"
            case OptionalPlan():
                yield f"partners{_for(plan.limit)}"
            case MinusPlan() | TestPlan():
                yield "each combination once" if _once(plan) else f"partners{_for(_limit(plan))}"
            case ClosurePlan():
                yield f"steps and paths{_for(plan.limit)}"
            case _:
                return


def _once(plan: MinusPlan | TestPlan) -> bool:
    test: ExistsTest | None = plan.test if isinstance(plan, TestPlan) else None
    return test is None or not (test.conditions or test.tests)


def _limit(plan: MinusPlan | TestPlan) -> int:
    return plan.test.limit if isinstance(plan, TestPlan) else NEVER


def _within(limit: int) -> str:
    return "" if limit >= NEVER else f" within {_long(limit)}"


def _for(limit: int) -> str:
    return " for ever" if limit >= NEVER else f" for {_long(limit)}"


def _long(limit: int) -> str:
    """A limit in words: `10 MINUTES`, and `less than` so much where it is a microsecond shorter."""
    if limit < 0:
        return "no time"
    exact, above = amount(limit), amount(limit + 1)
    if not exact.isdigit():
        return exact
    return f"{exact} µs" if above.isdigit() else f"less than {above}"


def _lines(e: IntervalExplanation) -> Iterator[str]:
    yield f"{e.form} {' '.join(f'?{name}' for name in e.columns)}".rstrip()
    yield f"streams: {' '.join(e.streams)}"
    if e.into is not None:
        yield f"into stream: {e.into}"
    if e.consumption != "none":
        yield f"consumption: {e.consumption}"
    yield from (f"instants: {e.instants}", f"memory: {e.memory}", f"shares: {e.shares}")
    for stratum in e.strata:
        yield f"stratum: rules {', '.join(map(str, stratum.rules))}{', recursive' if stratum.recursive else ''}"
    for rule in e.rules:
        yield from [f"rule {rule.rule}, makes {' . '.join(rule.makes)}:", *operator_lines(rule.operators)]
    yield from ["query:", *operator_lines(e.operators)]
