"""The facts in an explanation."""

from __future__ import annotations

from typing import Final

from oxiseq.grammar.records import dataclass

BEFORE_ENUMERATION: Final = "chosen before matches are enumerated"
"""When a strategy chooses, in most cases."""
ENDS_ENUMERATION: Final = "ends the enumeration"
"""How LIMIT is kept, in most cases."""


@dataclass(frozen=True, slots=True)
class FilterFacts:
    """A condition and how it is decided."""

    text: str
    how: str


@dataclass(frozen=True, slots=True)
class KbFacts:
    """P_D of a GPM. `how`: "semi-join" (rows are checked), "late enrichment" (rows are checked, matches are enriched)
    or "join" (each row is joined at once); `rows`: distinct solutions, None without a knowledge base."""

    how: str
    variables: tuple[str, ...]
    shared: tuple[str, ...]
    filters: tuple[str, ...]
    rows: int | None


@dataclass(frozen=True, slots=True)
class GpmFacts:
    """How one graph pattern is answered.

    `answered`: "columns" (the match kernel), "operators" (over rows of the match kernel) or "always" (an empty
    pattern). `reason`: what makes it more than a basic graph pattern; `patterns`: triple patterns that the kernel
    matches. `keeps`: the variables that its rows pass on.
    """

    name: str
    stream: str
    negated: bool
    answered: str
    reason: str
    patterns: int
    filters: tuple[FilterFacts, ...]
    keeps: tuple[str, ...]
    kb: KbFacts | None


@dataclass(frozen=True, slots=True)
class AtomFacts:
    """A typed predicate: the conditions on a single event, evaluated once for all states that need them."""

    number: int
    type: str
    predicates: tuple[str, ...]

    @property
    def text(self) -> str:
        """`SELL[price > 3]`."""
        return f"{self.type}[{' AND '.join(self.predicates)}]" if self.predicates else self.type


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """A stream; `slots`: the distinct triple patterns that one pass over an event's triples fills, None where typed
    predicates are evaluated on columns."""

    name: str
    iri: str
    slots: int | None


@dataclass(frozen=True, slots=True)
class WaitFacts:
    """A letter that an edge waits for or must not see.

    `letter`: GPM names, joined at one instant. `target`: the state it leads to (None for a negation). `index`: how
    the waiting runs are found; `conditions`: what row and run must agree on.
    """

    letter: str
    target: int | None
    index: str
    conditions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EdgeFacts:
    """A wait. `source`: a state, −1 where a match begins. `op`: the operator as the language writes it, or "window" for
    the wait for the window's end or for a bound to pass; `when`: that in words. `targets`: the states that an event
    leads to where sets of states are run; all else is about live keys. `live`: the values that distinguish its runs;
    runs that agree on them are one group. `age`: how long runs have waited that are here, "" where the gap has no
    bounds; `then`: what becomes of those that have waited longer. `lasting`: how long the parts may last that the gap
    lies in. `after`: the steps of the gap's negated group that have come; `steps`: what comes next of it, unless that
    ends the wait."""

    source: int
    op: str
    when: str
    arms: tuple[WaitFacts, ...] = ()
    guards: tuple[WaitFacts, ...] = ()
    live: tuple[str, ...] = ()
    age: str = ""
    then: str = ""
    lasting: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    steps: tuple[WaitFacts, ...] = ()
    targets: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class StateFacts:
    """A state: which letter was met last, whether a run here is a match, and what it may have `bound`, or which
    variables hold the event (`held`; None where rows bind variables, empty where the event is not shown)."""

    number: int
    letter: str
    final: bool
    bound: tuple[str, ...] = ()
    held: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class SequenceFacts:
    """All facts about one compiled query. `runner`: what finds its matches, and why; `becomes`: the sequence that a
    query of another language is compiled to. `correlation`: by which key its events could be dealt out to several runs,
    as on Spark, or why not; `sharing`: what it shares with other queries that are registered beside it. Its letters are
    `gpms` or `atoms`."""

    form: str
    columns: tuple[str, ...]
    sequence: str
    runner: str
    window: str
    clauses: tuple[str, ...]
    correlation: str
    sharing: str
    streams: tuple[StreamFacts, ...]
    gpms: tuple[GpmFacts, ...]
    atoms: tuple[AtomFacts, ...]
    states: tuple[StateFacts, ...]
    edges: tuple[EdgeFacts, ...]
    becomes: str = ""
