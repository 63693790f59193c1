"""The report of `why`, for every language: the same values for all, so that text, JSON and the page are the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, field
from typing import Any, Final

from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.arguments import public
from oxiseq.grammar.records import dataclass
from oxiseq.languages.reasons.bounds import FREE, Bounds
from oxiseq.languages.reasons.provenance import Provenance, to_prov
from oxiseq.languages.reasons.read import Reading

SHOWN: Final = 3
"""Events, matches, near matches that are listed of each part."""


@dataclass(frozen=True, slots=True)
class WhyRequest:
    """The request: which events, for how many matches it shows what they were made of, how much work it may
    be."""

    reading: Reading
    provenance: int = SHOWN
    bounds: Bounds = FREE


@dataclass(frozen=True, slots=True)
class Miss:
    """An event that came no further: its time (µs), and the values that the part read."""

    time: int
    values: Mapping[str, Term | None]


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a pattern. `kind`: constants, pattern, type, filter, kb or kb filter: `events` were left after it;
    holds: there are so many of `text`. `misses` are some of those that it stopped, the nearest first where that can be
    given."""

    kind: str
    text: str
    events: int
    misses: tuple[Miss, ...] = ()


@dataclass(frozen=True, slots=True)
class Funnel:
    """One graph pattern (SPAseq), event of the formula (CEQL), window, event pattern or triple pattern: `saw` events of
    its stream. FILTERs that need what precedes a graph pattern are examined in the sequence."""

    gpm: str
    stream: str
    saw: int
    steps: tuple[Step, ...]

    @property
    def passed(self) -> int:
        """How many events were left in the end."""
        return self.steps[-1].events if self.steps else self.saw


@dataclass(frozen=True, slots=True)
class Stage:
    """A beginning of the query and how many matches it has (CEQL: events that complete it; queries over windows: rows
    at the instant that is described); `more`: at least so many."""

    text: str
    matches: int
    more: bool


@dataclass(frozen=True, slots=True)
class Near:
    """A match that one condition prevents: GPM → times of its events (µs), the values that the condition reads, and
    in words what is against it."""

    events: Mapping[str, tuple[int, ...]]
    values: Mapping[str, Term | None]
    words: str = ""


@dataclass(frozen=True, slots=True)
class Reason:
    """A condition of the last step: without it alone there would be `matches` more (at least so many if `more`)."""

    kind: str
    condition: str
    matches: int
    more: bool
    nearest: tuple[Near, ...]


@dataclass(frozen=True, slots=True)
class Wording:
    """A language's names for parts of the report: the heads of its `patterns` and `steps`, the answers of a step, what
    steps do with them, and the prefix of a value's name."""

    patterns: str = "windows and patterns"
    steps: str = "WHERE, part by part"
    one: str = "row"
    many: str = "rows"
    verb: str = ""
    mark: str = "?"


WORDING: Final = Wording()


@public
@dataclass(frozen=True, slots=True)
class Why:
    """What became of everything, of a query of any language.

    `gpms`: per graph pattern how far its events came. `stages`: how many matches the beginnings of the query have.
    `stopped`: the first stage that has none, None if all have some; `reasons`: what its last step fails by (of the last
    stage if none has stopped). `found`: how many matches the unchanged query has (at least so many if `more`).
    `matches`: what some of them were made of. `late`: events that came too late to be seen. `at`: the one instant that
    is described (queries over windows); `notes`: what else there is to say.

    >>> import oxiseq
    >>> text = '''PREFIX : <http://example.org/>
    ... SELECT ?who ?paid FROM STREAM S <http://example.org/payments>
    ... WHERE { SEQ(A) DEFINE GPM A ON S { ?who :paid ?paid } }'''
    >>> payment = "<http://example.org/ann> <http://example.org/paid> 5 ."
    >>> told = oxiseq.Query(text).why({"S": [(1, payment)]})
    >>> told.found, told.stopped, told.gpms[0].gpm
    (1, None, 'A')
    """

    gpms: tuple[Funnel, ...]
    stages: tuple[Stage, ...]
    stopped: str | None
    reasons: tuple[Reason, ...]
    found: int
    more: bool
    late: int
    matches: tuple[Provenance, ...] = field(repr=False)
    language: str
    at: int | None = None
    notes: tuple[str, ...] = ()
    wording: Wording = field(default=WORDING, repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """As JSON values; terms as N-Triples, times in microseconds."""
        return {name: _plain(value) for name, value in asdict(self).items()}

    def to_prov(self) -> str:
        """The matches' provenance in TriG, after W3C's PROV-O: events are named graphs, matches derive from them."""
        return to_prov(self.matches)

    def __str__(self) -> str:
        from oxiseq.languages.reasons.text import as_text  # noqa: PLC0415  it knows this class

        return as_text(self)

    def _repr_html_(self) -> str:
        from oxiseq.languages.reasons.html import as_html  # noqa: PLC0415  it knows this class

        return as_html(self)


def _plain(value: Any) -> Any:
    convert: dict[type, Callable[[Any], Any]] = {
        dict: lambda each: {k: _plain(v) for k, v in each.items()},
        list: lambda each: [_plain(v) for v in each],
        tuple: lambda each: [_plain(v) for v in each],
    }
    if type(value) in convert:
        return convert[type(value)](value)
    return value if value is None or isinstance(value, str | int | float) else str(value)
