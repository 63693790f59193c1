"""What the FILTER of a GPM reads of the partial match besides variables: times, and aggregates over the iterations so
far of a repeated GPM (semantics.md 2.5b).

In the flow: conditions of GPMs → **variables for these** → states. `TIMEOF(A)` is a variable that each row
of A binds; an aggregate is a *fold*, a value that each row of its GPM updates and that runs carry in their live
keys as any other. AVG is the quotient of two folds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final

from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from oxiseq.engine.expressions.aggregate import aggregate_values
from oxiseq.engine.expressions.exact import ExpressionError, evaluate
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Aggregate, Call, Expression, FunctionCall, MatchFunction, Prev
from oxiseq.grammar.places import Overview, repeated_gpms
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import expression_variables, match_parts

_INTEGER: Final = NamedNode("http://www.w3.org/2001/XMLSchema#integer")
_ZERO: Final = Literal("0", datatype=_INTEGER)
_OF_NOTHING: Final = {"COUNT": _ZERO, "SUM": _ZERO, "AVG": _ZERO, "GROUP_CONCAT": Literal("")}
"""Aggregates of no iteration that are no error."""


@dataclass(frozen=True, slots=True)
class Fold:
    """An aggregate, not AVG, over the iterations so far of `gpm`; COUNT of the GPM has no argument."""

    gpm: str
    aggregate: Aggregate

    @property
    def variables(self) -> tuple[Variable, ...]:
        """What it takes from a row."""
        return tuple(sorted(expression_variables(self.aggregate), key=str))

    @property
    def column(self) -> Variable | None:
        """The variable whose value in one iteration it is, if it is nothing else."""
        arg = self.aggregate.arg
        return arg if self.aggregate.name in ("FIRST", "LAST") and isinstance(arg, Variable) else None

    @property
    def goes_on(self) -> bool:
        """Whether an iteration changes what those before it have made."""
        return self.aggregate.name not in ("FIRST", "LAST")

    def step(self, kept: int | None, ids: Mapping[Variable, int], terms: TermDictionary) -> int:
        """The id of its value behind a row that binds `ids`, 0 for an error; `kept`: of that before the row, None if
        there was no iteration."""
        name, value = self.aggregate.name, self._value(ids, terms)
        if name == "COUNT":
            known = 0 if kept is None else int(_text(terms.term(kept)))
            return terms.intern(Literal(str(known + (value is not None)), datatype=_INTEGER))
        if kept == 0 and name != "SAMPLE":
            return 0
        before = terms.term(kept) if kept else None
        try:
            found = aggregate_values(self.aggregate, [value] if kept is None else [before, value])
        except ExpressionError:
            return 0
        if isinstance(found, BlankNode):
            return next(i for i in (kept or 0, *ids.values()) if i and terms.term(i) == found)
        return terms.intern(found)

    def _value(self, ids: Mapping[Variable, int], terms: TermDictionary) -> Term | None:
        """Of its argument in one iteration; None for an error."""
        if self.aggregate.arg is None:
            return _ZERO
        try:
            return evaluate(self.aggregate.arg, {v: terms.term(i) for v, i in ids.items() if i})
        except ExpressionError:
            return None


def _text(term: Term) -> str:
    assert isinstance(term, Literal)
    return term.value


def time_of(gpm: str) -> Variable:
    """Stands for the time of a GPM's event."""
    return Variable(f"__time_{gpm}")


def gpm_of_time(variable: Variable) -> str | None:
    """The GPM whose event's time it stands for, if it stands for one."""
    name = variable.value.removeprefix("__time_")
    return None if name == variable.value else name


def previous_name(variable: Variable) -> Variable:
    """The name that stands for PREV(?v) in a compiled condition."""
    return Variable(f"__previous_{variable.value}")


@dataclass(frozen=True, slots=True)
class Asked:
    """`timed`: the GPMs whose rows bring their time; `folds`: with the variables that stand for them; `over`: the GPM
    that an aggregate runs over."""

    timed: frozenset[str] = frozenset()
    folds: Mapping[Fold, Variable] = field(default_factory=dict)
    over: Mapping[Aggregate, str] = field(default_factory=dict)

    def folds_in(self, condition: Expression) -> list[Fold]:
        """What a condition needs of iterations."""
        return [fold for part in match_parts(condition) for fold in self._folds_of(part)]

    def named(self, condition: Expression, gpm: str, known: frozenset[Fold] = frozenset()) -> Expression:
        """The condition of `gpm` with a variable for each such thing; `known`: the folds that have seen an
        iteration."""
        match condition:
            case Prev(variable):
                return previous_name(variable)
            case MatchFunction("EVENTTIME"):
                return time_of(gpm)
            case MatchFunction("TIMEOF", str(other)):
                return time_of(other)
            case MatchFunction() | Aggregate():
                return self._fold(condition, known)
            case Call(name, args):
                return Call(name, tuple(self.named(a, gpm, known) for a in args))
            case FunctionCall(function, args, distinct):
                return FunctionCall(function, tuple(self.named(a, gpm, known) for a in args), distinct)
            case _:
                return condition

    def _fold(self, part: MatchFunction | Aggregate, known: frozenset[Fold]) -> Expression:
        folds = self._folds_of(part)
        if not known.issuperset(folds) and part.name in _OF_NOTHING:
            return _OF_NOTHING[part.name]
        if part.name == "AVG":
            return Call("/", tuple(self.folds[fold] for fold in folds))
        return self.folds[folds[0]]

    def _folds_of(self, part: MatchFunction | Aggregate) -> list[Fold]:
        if isinstance(part, Aggregate):
            return _folds_of(part, self.over[part])
        return [Fold(part.gpm, Aggregate("COUNT", None))] if part.name == "COUNT" and part.gpm is not None else []


NOTHING_ASKED: Final = Asked()


def _folds_of(aggregate: Aggregate, gpm: str) -> list[Fold]:
    names = ("SUM", "COUNT") if aggregate.name == "AVG" else (aggregate.name,)
    return [Fold(gpm, Aggregate(name, aggregate.arg, separator=aggregate.separator)) for name in names]


def asked_by(seen: Overview) -> Asked:
    """What the GPMs of a checked query ask."""
    timed: set[str] = set()
    over: dict[Aggregate, str] = {}
    folds: dict[Fold, None] = {}
    for place in dict.fromkeys(seen.places):
        name = place.name
        for part in (part for condition in seen.parts[name].stateful for part in match_parts(condition)):
            match part:
                case Aggregate():
                    (over[part],) = repeated_gpms(seen, part)
                    folds |= dict.fromkeys(_folds_of(part, over[part]))
                case MatchFunction("COUNT", str(other)):
                    folds[Fold(other, Aggregate("COUNT", None))] = None
                case MatchFunction(_, None):  # all events of an `&` are of one time, for which its first GPM stands
                    timed |= {name, *place.beside}
                case MatchFunction(_, str(other)):
                    timed.add(other)
    return Asked(frozenset(timed), {fold: Variable(f"__fold_{n}") for n, fold in enumerate(folds)}, over)
