"""Letters whose rows Python makes, under names of their own: of joined events, filters, times, operators and the
knowledge base.

In the flow: letters of queries → **letters that are equal but for names, once** → common letters (letters.py). What a
letter is made of is renamed in order of appearance, so equal letters of several queries are equal algebra, with one
plan; `run/letters.py` makes their rows of it as it makes those of a query alone.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any, Final, TypeVar

from pyoxigraph import BlankNode, Variable

from oxiseq.engine.expressions.exists import graph_of
from oxiseq.engine.expressions.functions import is_pure
from oxiseq.engine.matching.enrich import KbPattern
from oxiseq.engine.patterns.plan import GpmRequest, StreamPlan, compile_stream
from oxiseq.engine.plan.query import GpmPlan, LetterPlan, QueryPlan
from oxiseq.engine.sequence.asked import time_of
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Call, Exists, Gpm
from oxiseq.grammar.parts import changed, parts
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import GpmParts, exists_in

T = TypeVar("T")


class _Names:
    """Names of a letter's GPMs, variables and blank nodes, in order of appearance; `kept`: only the GPMs have others
    than they had."""

    def __init__(self, letter: LetterPlan, *, kept: bool) -> None:
        self._kept = kept
        self.gpms: Final = {name: f"g{number}" for number, name in enumerate(letter.letter)}
        self._terms: dict[Variable | BlankNode, Variable | BlankNode] = {}
        for name, own in self.gpms.items():
            self._terms |= {time_of(name): time_of(own), graph_of(name): graph_of(own)}

    def of(self, algebra: T) -> T:
        """The same with these names."""
        for variable in parts(algebra, Variable):
            self.variable(variable)
        for blank in parts(algebra, BlankNode):
            self._terms.setdefault(blank, blank if self._kept else BlankNode(f"b{len(self._terms)}"))
        return changed(algebra, self._renamed)

    def _renamed(self, part: Any) -> Any:
        if isinstance(part, Exists) and part.gpm:
            return replace(part, gpm=self.gpms[part.gpm])
        return self._terms[part] if isinstance(part, Variable | BlankNode) else part

    def variable(self, variable: Variable) -> Variable:
        """That of a variable."""
        named = self._terms.setdefault(variable, variable if self._kept else Variable(f"v{len(self._terms)}"))
        assert isinstance(named, Variable)
        return named


@dataclass(frozen=True, slots=True)
class GpmForm:
    """What decides the mappings of a GPM. shared: as of `KbPattern`; late, timed, asks_again: as of `GpmPlan`; draws:
    see `_draws`."""

    stream: int
    parts: GpmParts
    shared: tuple[Variable, ...]
    late: bool
    timed: bool
    asks_again: bool
    draws: object | None


@dataclass(slots=True, eq=False)
class MadeGpm:
    """A GPM of some made letters. `requests`: how it is matched, with all its variables; `first`: its number among what
    the matcher of its stream looks for, its leaves behind it; `letters`: those that it is of. What it reads of the KB
    has a name that no other has: `asks` if its KB pattern is split off, the same for equal ones that are joined alike,
    `in_place` if operators read it."""

    plan: GpmPlan
    requests: StreamPlan
    first: int
    asks: str | None
    asks_again: bool
    letters: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, form: GpmForm, first: int, terms: TermDictionary) -> MadeGpm:
        """Compiled. Constants enter the dictionary."""
        own = form.parts
        kb = None if own.kb is None else KbPattern(own.kb, form.shared, terms)
        keep = own.pattern_variables
        requests = compile_stream([GpmRequest(f"{form.stream}.{first}", own, keep)], terms)
        plan = GpmPlan(own.gpm.name, form.stream, own, keep, kb, form.late, 0, form.timed)
        asks = None if kb is None else " ".join([kb.text, *(variable.value for variable in kb.shared)])
        return cls(plan, requests, first, asks, form.asks_again)

    @property
    def numbers(self) -> range:
        """Of itself and its leaves."""
        return range(self.first, self.first + 1 + len(self.requests.leaves))

    @property
    def in_place(self) -> str | None:
        """See above."""
        return next((each.part for each in self.requests.operators if each.asked), None)


@dataclass(slots=True)
class MadeLetter:
    """A letter of some queries. `gpms`: by the names that `plan` has for them; `names`: of the columns of its rows."""

    plan: LetterPlan
    gpms: dict[str, MadeGpm]
    names: list[Variable] = field(default_factory=list)

    @property
    def tests(self) -> tuple[Exists, ...]:
        """The EXISTS of its filters."""
        return tuple(test for condition in self.plan.filters for test in exists_in(condition))

    @property
    def stored(self) -> list[bool]:
        """By column whether it has terms, not numbers that hold for a batch."""
        return [name not in map(graph_of, self.gpms) for name in self.names]


class NamedLetter:
    """A made letter of one query, renamed."""

    def __init__(self, letter: LetterPlan, plan: QueryPlan) -> None:
        own = {name: plan.runner.gpms[name] for name in letter.letter}
        # what operators ask the knowledge base has the names of variables, and is what the query has announced
        names = _Names(letter, kept=any(gpm.parts.in_place for gpm in own.values()))
        self.gpms: Final = names.gpms
        """By the query's name of a GPM that of here."""
        self.forms: Final = {names.gpms[name]: _form(names, gpm) for name, gpm in own.items()}
        self.plan: Final = LetterPlan(tuple(self.forms), names.of(letter.filters), (), positive=True)
        bound = {variable for gpm in own.values() for variable in _bound(gpm)}
        stored = plan.runner.stored if letter.positive else ()
        wanted = dict.fromkeys((*letter.columns, *(variable for variable in stored if variable in bound)))
        self.brought: Final = {variable: names.variable(variable) for variable in wanted}
        """By what the query wants of its rows the names that this has here."""

    @property
    def key(self) -> tuple[object, ...]:
        """The same for letters with the same rows, their columns aside."""
        return _draws(self.plan.filters), self.plan.filters, *self.forms.values()


def _draws(algebra: object) -> object | None:
    """Equal only to itself, for what has other values each time."""
    return None if all(map(is_pure, parts(algebra, Call))) else object()


def _form(names: _Names, gpm: GpmPlan) -> GpmForm:
    before = gpm.parts
    bare = Gpm(names.gpms[gpm.name], "", before.pattern)
    own = names.of(replace(before, gpm=bare, stateful=()))
    own = replace(own, certain=frozenset(map(names.variable, before.certain)))
    shared = () if gpm.kb is None else tuple(map(names.variable, gpm.kb.shared))
    return GpmForm(gpm.stream, own, shared, gpm.late, gpm.timed, gpm.asks_again, _draws(own))


def _bound(gpm: GpmPlan) -> tuple[Variable, ...]:
    """What its mappings bind before matches are enriched."""
    return gpm.parts.pattern_variables if gpm.late else gpm.parts.variables
