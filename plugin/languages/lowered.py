"""Languages that say in their own words what another one can say: most that a plug-in brings.

In the flow: query ─`lower`─▶ query of the other language ─▶ that one's `Language`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pyoxigraph import NamedNode

from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.matches.paging import Page
from oxiseq.engine.run.run import Run
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Span
from oxiseq.grammar.languages import USUAL, AnyQuery
from oxiseq.languages.driving import Opener
from oxiseq.languages.explanation import Explanation
from oxiseq.languages.language import LOG, Language
from oxiseq.languages.reasons.read import Bounds, History
from oxiseq.languages.reasons.read import Span as ReadSpan
from oxiseq.languages.reasons.report import Evidence, WhyRequest
from oxiseq.languages.reasons.why import Subject
from oxiseq.languages.registry import language_named
from oxiseq.matches.matches import Matches
from oxiseq.matches.shape import Shape
from oxiseq.options import Options
from oxiseq.sources.knowledge import Kb

Q = TypeVar("Q", bound=AnyQuery)


class LoweredLanguage(Language[Q]):
    """A language whose queries are lowered to another's. It needs a `syntax` and `lower`; a run, explanation, reasons
    and snapshots are those of the lowered query."""

    def __init__(self, into: str = USUAL) -> None:
        self._into = language_named(into)
        self.asks_kb, self.reads_any = self._into.asks_kb, self._into.reads_any

    @abstractmethod
    def lower(self, query: Q) -> Any:
        """The same query in the other language's algebra, checked. Raises QueryError."""

    def prepare(self, tell: Callable[[str], object] = LOG.warning) -> None:
        self._into.prepare(tell)

    def compile(self, query: Q, terms: TermDictionary, kb: KnowledgeBase, options: Options) -> tuple[Run, Shape]:
        return self._into.compile(self.lower(query), terms, kb, options)

    def names(self, query: Q, plan: Any) -> Mapping[str, str]:
        return self._into.names(self.lower(query), plan)

    def opener(self, query: Q, options: Options) -> Opener:
        return self._into.opener(self.lower(query), options)

    def explain(self, query: Q, kb: Kb, rules: Sequence[str] = ()) -> Explanation:
        return self._into.explain(self.lower(query), kb, rules)

    def subject(self, query: Q, streams: Mapping[str, Any], kb: Kb, options: Options, asked: WhyRequest) -> Subject:
        found = self._into.subject(self.lower(query), streams, kb, options, asked)
        found.language = self.name
        return found

    def reach(self, query: Q, at: int, options: Options) -> ReadSpan:
        return self._into.reach(self.lower(query), at, options)

    def every_match(self, query: Q) -> Any:
        return self._into.every_match(self.lower(query))

    def matches_at(
        self, query: Q, streams: Mapping[str, Any], kb: Kb, options: Options, asked: WhyRequest, page: Page
    ) -> Matches:
        return self._into.matches_at(self.lower(query), streams, kb, options, asked, page)

    def graphs(self, query: Q) -> Iterable[tuple[NamedNode, Span]]:
        return [(name, query.span) for name, _ in self._into.graphs(self.lower(query))]

    def origin(self, run: Run) -> int | None:
        return self._into.origin(run)

    def evidence(
        self,
        query: Q,
        events: Mapping[str, tuple[int, ...]],
        row: Mapping[str, Term | None],
        history: History,
        kb: KnowledgeBase,
        bounds: Bounds,
    ) -> Evidence | None:
        return self._into.evidence(self.lower(query), events, row, history, kb, bounds)

    def own(self, query: Q) -> AnyQuery:
        return self._into.own(self.lower(query))
