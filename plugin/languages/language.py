"""What every query language can do for users. A new language is a subclass of `Front` and a line in registry.py.

Where it stands: query → **front** → a run and the shape of its matches, a replay, an explanation, reasons. Store,
server and command line ask the front, never which language it is.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, Generic, TypeVar, cast

from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.run.run import Run
from oxiseq.engine.snapshot.saving import AnyPlan, restore
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.languages import Language
from oxiseq.languages.driving import Driver, Opener
from oxiseq.languages.explanation import Explanation
from oxiseq.languages.reasons.report import Why, WhyRequest
from oxiseq.matches.shape import Shape
from oxiseq.options import Options
from oxiseq.sources.knowledge import Kb, knowledge_of
from oxiseq.sources.sources import batches_of

Q = TypeVar("Q")
LOG: Final = logging.getLogger("oxiseq")


class Front(ABC, Generic[Q]):
    """One language. Q: its queries."""

    language: ClassVar[Language]
    media_type: ClassVar[str]
    """Of query texts."""
    asks_kb: ClassVar[bool] = True
    """Whether its queries can ask a knowledge base."""

    @abstractmethod
    def prepare(self, tell: Callable[[str], object] = LOG.warning) -> None:
        """Before queries are run: say so in one line if kernels have to be compiled."""

    @abstractmethod
    def compile(
        self, query: Q, terms: TermDictionary, kb: KnowledgeBase, options: Options
    ) -> tuple[Run, Shape]:
        """A run that has seen nothing, and what its matches have in common. Raises QueryError, OxiseqError, KbError."""

    def resume(self, state: bytes, run: Run, terms: TermDictionary, kb: KnowledgeBase) -> Run:
        """A run that goes on from a snapshot of a run of the same plan. Raises SnapshotError, KbError."""
        return restore(state, cast(AnyPlan, run.plan), terms, kb)

    def replay(self, query: Q, kb: Kb, options: Options) -> Driver:
        """The query over streams that are to be attached. Raises QueryError, OxiseqError, KbError."""
        run, shape = self.compile(query, TermDictionary(), knowledge_of(kb), options)
        return Driver(run, shape, self.names(query, run.plan), self.opener(options))

    def names(self, query: Q, plan: Any) -> Mapping[str, str]:
        """Name in the query → IRI of the streams that it reads, in its order."""
        return {iri: iri for iri in plan.streams}

    def opener(self, options: Options) -> Opener:
        """How streams that are given whole are read."""
        return batches_of

    @abstractmethod
    def explain(self, query: Q, kb: Kb, rules: Sequence[str] = ()) -> Explanation:
        """What the query is compiled to; with `kb` its patterns are asked. Raises QueryError, KbError."""

    @abstractmethod
    def why(self, query: Q, streams: Mapping[str, Any], kb: Kb, options: Options, asked: WhyRequest) -> Why:
        """Why it matches or does not, over whole streams. Raises OxiseqError, EventError, KbError, LimitError."""
