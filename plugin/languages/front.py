"""What every query language can do for users. A new language is a subclass of `Front` and a line in registry.py.

Where it stands: query → **front** → a run and the shape of its matches, a replay, an explanation, reasons. Store,
server and command line ask the front, never which language it is.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import Any, ClassVar, Final, Generic, TypeVar

from oxiseq.driving import Driver
from oxiseq.engine.errors import ArgumentValueError, OxiseqError
from oxiseq.engine.events.time import to_microseconds
from oxiseq.engine.events.tuples import USUAL_NAMES, Naming
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.rsp.plan import UNSAID, RspOptions
from oxiseq.engine.run.runs import AnyRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.explanation import Explanation
from oxiseq.grammar.languages import Language
from oxiseq.grammar.rsp_algebra import Consume, Report
from oxiseq.knowledge import Kb
from oxiseq.matches.shape import Shape
from oxiseq.reasons.report import Why, WhyRequest

Q = TypeVar("Q")
W = TypeVar("W", bound=Enum)
LOG: Final = logging.getLogger("oxiseq")


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


class Front(ABC, Generic[Q]):
    """One language. Q: its queries."""

    language: ClassVar[Language]
    media_type: ClassVar[str]
    """Of query texts."""
    asks_kb: ClassVar[bool] = True
    """Whether its queries can ask a knowledge base."""
    takes_reports: ClassVar[bool] = False
    """Whether its queries can be told what to report, and when."""
    takes_consumption: ClassVar[bool] = False
    """Whether its queries can be told what answers use up."""

    @abstractmethod
    def prepare(self, tell: Callable[[str], object] = LOG.warning) -> None:
        """Before queries are run: say so in one line if kernels have to be compiled."""

    @abstractmethod
    def compile(
        self, query: Q, terms: TermDictionary, kb: KnowledgeBase, options: Options
    ) -> tuple[AnyRun, Shape]:
        """A run that has seen nothing, and what its matches have in common. Raises QueryError, OxiseqError, KbError."""

    @abstractmethod
    def resume(self, state: bytes, run: AnyRun, terms: TermDictionary, kb: KnowledgeBase) -> AnyRun:
        """A run that goes on from a snapshot of a run of the same plan. Raises SnapshotError, KbError."""

    @abstractmethod
    def replay(self, query: Q, kb: Kb, options: Options) -> Driver:
        """The query over streams that are to be attached. Raises QueryError, OxiseqError, KbError."""

    @abstractmethod
    def explain(self, query: Q, kb: Kb, rules: Sequence[str] = ()) -> Explanation:
        """What the query is compiled to; with `kb` its patterns are asked. Raises QueryError, KbError."""

    @abstractmethod
    def why(self, query: Q, streams: Mapping[str, Any], kb: Kb, options: Options, asked: WhyRequest) -> Why:
        """Why it matches or does not, over whole streams. Raises OxiseqError, EventError, KbError, LimitError."""


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
        raise ArgumentValueError(f"{name}={word!r} is not known; known: {', '.join(w.value for w in kind)}") from None


def without_reports(front: Front[Any], options: Options) -> None:
    """Raise OxiseqError if something is said that a query of the language cannot be told."""
    kind = front.language.upper()
    if replace(options.said, consume=None) != UNSAID and not front.takes_reports:
        raise OxiseqError(f"report and instants are for queries over windows, not for {kind}")
    if options.said.consume is not None and not front.takes_consumption:
        raise OxiseqError(f"consumption is for queries over windows and EP-SPARQL, not for {kind}")
