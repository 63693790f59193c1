"""What every query language can do for users. A new language is a subclass of `Front` and a line in registry.py.

Where it stands: query → **front** → a run and the shape of its answers, a replay, an explanation, results as text,
files and blobs of the journal. Store, server and command line ask the front, never which language it is.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import Any, BinaryIO, ClassVar, Final, Generic, NamedTuple, Protocol, TypeVar

from oxiseq.container import Answers
from oxiseq.driving import Driver
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.time import to_microseconds
from oxiseq.engine.events.tuples import USUAL_NAMES, Naming
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.rsp.plan import UNSAID, RspOptions
from oxiseq.engine.run.runs import AnyRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.explanation import Explanation
from oxiseq.grammar.languages import Language
from oxiseq.grammar.rsp_algebra import Consume, Report
from oxiseq.journal import Heading
from oxiseq.knowledge import Kb
from oxiseq.reasons.report import Why, WhyRequest
from oxiseq.spaseq.formats import ResultFormat
from oxiseq.times import Clock

Q = TypeVar("Q")
W = TypeVar("W", bound=Enum)
B = TypeVar("B")
Found_co = TypeVar("Found_co", covariant=True)
LOG: Final = logging.getLogger("oxiseq")


class Table(NamedTuple):
    """For a terminal: header, rows, and which columns are flush right."""

    header: list[str]
    rows: list[list[str]]
    right: list[bool]


@dataclass(frozen=True, slots=True)
class Options:
    """What is said of a query beside its text; times in microseconds."""

    start: int | None = None
    """The t of tumbling windows; events before it are not seen."""
    lateness: int = 0
    """How much a stream may be out of order."""
    stream_names: Mapping[str, str] = field(default_factory=dict)
    """CEQL: name in FROM → IRI, where it is not the vocabulary's."""
    naming: Naming = USUAL_NAMES
    """CEQL: the columns of tables that hold type and time."""
    said: RspOptions = UNSAID
    """Queries over windows: what their text leaves open."""
    rules: tuple[str, ...] = ()
    """EP-SPARQL: CONSTRUCT rules over whose closure the query is answered."""
    reads: tuple[str, ...] = ()
    """EP-SPARQL: the streams that there are, for a query that names none."""
    clock: Clock = Clock.MICROSECONDS
    """Queries over windows and EP-SPARQL: how answers tell their times."""


class AnswerShape(Protocol[Found_co]):
    """What the answers of one query have in common: `match` makes one of a batch."""

    @property
    def terms(self) -> TermDictionary: ...

    @property
    def variables(self) -> tuple[str, ...]: ...

    @property
    def reads(self) -> tuple[str, ...]: ...

    @property
    def feeds(self) -> str | None: ...

    def match(self, batch: Any, index: int) -> Found_co: ...


class Front(ABC, Generic[Q, B]):
    """One language. Q: its queries; B: batches of its matches. `shape` is what `compile` gave for the query."""

    language: ClassVar[Language]
    media_type: ClassVar[str]
    """Of query texts."""
    json_media_type: ClassVar[str] = "application/sparql-results+json"
    """Of its answers in JSON."""
    asks_kb: ClassVar[bool] = True
    """Whether its queries can ask a knowledge base."""
    takes_reports: ClassVar[bool] = False
    """Whether its queries can be told what to report, and when."""
    takes_consumption: ClassVar[bool] = False
    """Whether its queries can be told what answers use up."""
    keeps_times: ClassVar[bool] = False
    """Whether its answers tell times as the caller wrote his."""

    @abstractmethod
    def prepare(self, tell: Callable[[str], object] = LOG.warning) -> None:
        """Before queries are run: say so in one line if kernels have to be compiled."""

    @abstractmethod
    def compile(
        self, query: Q, terms: TermDictionary, kb: KnowledgeBase, options: Options
    ) -> tuple[AnyRun, AnswerShape[Any]]:
        """A run that has seen nothing, and the shape of its answers. Raises QueryError, OxiseqError, KbError."""

    @abstractmethod
    def resume(self, state: bytes, run: AnyRun, terms: TermDictionary, kb: KnowledgeBase) -> AnyRun:
        """A run that goes on from a snapshot of a run of the same plan. Raises SnapshotError, KbError."""

    @abstractmethod
    def replay(self, query: Q, kb: Kb, options: Options) -> Driver[B]:
        """The query over streams that are to be attached. Raises QueryError, OxiseqError, KbError."""

    @abstractmethod
    def explain(self, query: Q, kb: Kb, rules: Sequence[str] = ()) -> Explanation:
        """What the query is compiled to; with `kb` its patterns are asked. Raises QueryError, KbError."""

    @abstractmethod
    def why(self, query: Q, streams: Mapping[str, Any], kb: Kb, options: Options, asked: WhyRequest) -> Why:
        """Why it matches or does not, over whole streams. Raises OxiseqError, EventError, KbError, LimitError."""

    # --- results ------------------------------------------------------------------------------------

    @abstractmethod
    def check(self, shape: Any, format: ResultFormat) -> None:
        """Raise OxiseqError if the matches cannot be written so."""

    @abstractmethod
    def ordered(self, shape: Any, batches: Iterator[B], *, ties: bool = False) -> Iterator[B]:
        """The matches in order of end time; with `ties` those of one end by their events."""

    @abstractmethod
    def gathered(self, shape: Any, batches: Sequence[B], events: int) -> Answers[Any]:
        """The matches in one container, as `run` answers them; `events`: how many events were read."""

    @abstractmethod
    def table(self, shape: Any, batches: Iterable[B]) -> Table | None:
        """For a terminal; None for an answer without rows."""

    @abstractmethod
    def write(
        self, shape: Any, batches: Iterable[B], format: ResultFormat, out: BinaryIO, *, stream: bool = False
    ) -> int:
        """Write them in the order given; returns how many. `stream`: Arrow as an IPC stream, not a file."""

    @abstractmethod
    def text(self, shape: Any, batches: Iterable[B], format: ResultFormat) -> Iterator[str]:
        """The matches as pieces of text; `format` is one of the text formats."""

    # --- the journal --------------------------------------------------------------------------------

    @abstractmethod
    def heading(self, shape: Any) -> Heading:
        """What a query's matches have in common in the journal."""

    @abstractmethod
    def packed(self, shape: Any, batches: Sequence[B], heading: Heading, scope: str) -> bytes:
        """Batches of one query, one at least, as one blob; `scope` tells blank nodes of other runs apart."""


def without_names(options: Options, kind: str) -> None:
    """Raise OxiseqError if names of streams are given to a query that says their IRIs itself."""
    if options.stream_names:
        raise OxiseqError(f"stream_names are for CEQL: {kind} says its streams' IRIs itself")


def said(
    report: str | None, instants: Iterable[int | datetime] | None, consumption: str | None
) -> RspOptions:
    """What a user says of a query over windows. Raises OxiseqError for words that are not known."""
    return RspOptions(
        None if report is None else _word(Report, report, "report"),
        None if instants is None else tuple(to_microseconds(t) for t in instants),
        None if consumption is None else _word(Consume, consumption, "consumption"),
    )


def _word(kind: type[W], word: str, name: str) -> W:
    try:
        return kind(word.upper())
    except (ValueError, AttributeError):  # no such word, or no text
        raise OxiseqError(f"{name}={word!r} is not known; known: {', '.join(w.value for w in kind)}") from None


def without_reports(front: Front[Any, Any], options: Options) -> None:
    """Raise OxiseqError if something is said that a query of the language cannot be told."""
    kind = front.language.upper()
    if replace(options.said, consume=None) != UNSAID and not front.takes_reports:
        raise OxiseqError(f"report and instants are for queries over windows, not for {kind}")
    if options.said.consume is not None and not front.takes_consumption:
        raise OxiseqError(f"consumption is for queries over windows and EP-SPARQL, not for {kind}")
