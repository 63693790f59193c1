"""A query language as users meet it: `Language`, which each is a subclass of.

In the flow: query → **language** → a run and the shape of its matches, a driver over whole streams, an
explanation, reasons. Store, server, Spark, tests and command line ask it, never which language it is: registry.py
finds it, ours or a plug-in's.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar, cast

from pyoxigraph import NamedNode, Variable

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.extras import needed
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.plan.correlation import Correlation
from oxiseq.engine.run.run import Run
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import GraphPattern, Span
from oxiseq.grammar.errors import QueryError
from oxiseq.grammar.garbage import uncollected
from oxiseq.grammar.languages import AnyQuery, Syntax
from oxiseq.grammar.parts import parts
from oxiseq.languages.driving import Driver, Opener
from oxiseq.languages.reads import reads_of
from oxiseq.languages.result_streams import StreamUse, refuse_own_results
from oxiseq.languages.tables import graphs_opener
from oxiseq.matches.matches import Matches
from oxiseq.matches.shape import Shape
from oxiseq.options import Options
from oxiseq.sources.knowledge import Kb, knowledge_of
from oxiseq.sources.unmet import Watch

if TYPE_CHECKING:
    from oxiseq.engine.matches.paging import Page
    from oxiseq.engine.snapshot import saving
    from oxiseq.languages.explanation import Explanation
    from oxiseq.languages.reasons import why
    from oxiseq.languages.reasons.read import Bounds, History, Point
    from oxiseq.languages.reasons.read import Span as ReadSpan
    from oxiseq.languages.reasons.report import Evidence, Why, WhyRequest
    from oxiseq.languages.reasons.why import Subject
else:
    saving, why = needed("oxiseq.engine.snapshot.saving"), needed("oxiseq.languages.reasons.why")

Q = TypeVar("Q", bound=AnyQuery)
LOG: Final = logging.getLogger("oxiseq")


class Language(ABC, Generic[Q]):
    """One language. Q: its queries.

    A language that says in its own words what another one can say is a `LoweredLanguage` (lowered.py), which needs
    less.
    """

    syntax: ClassVar[Syntax[Any]]
    """Its names, and its texts: `Syntax` (grammar/languages.py)."""
    asks_kb: bool = True
    """Whether its queries can ask a knowledge base."""
    reads_any: bool = False
    """Whether a query may name no stream, and then reads all that there are."""
    whole: str = "its answers may depend on all events"
    """Why its queries need all events in one place, where none of them can do without (`correlation`)."""
    in_one_task: bool = False
    """Whether Spark runs queries that need all events in one place: in one task."""

    @property
    def name(self) -> str:
        """As code and addresses write it."""
        return self.syntax.name

    @abstractmethod
    def prepare(self, tell: Callable[[str], object] = LOG.warning) -> None:
        """Before queries are run: say so in one line if kernels have to be compiled."""

    @abstractmethod
    def compile(self, query: Q, terms: TermDictionary, kb: KnowledgeBase, options: Options) -> tuple[Run, Shape]:
        """A run that has seen nothing, and what its matches have in common. Raises QueryError, OxiseqError, KbError."""

    @abstractmethod
    def explain(self, query: Q, kb: Kb, rules: Sequence[str] = ()) -> Explanation:
        """What the query is compiled to; with `kb` its patterns are queried. Raises QueryError, KbError."""

    @abstractmethod
    def subject(self, query: Q, streams: Mapping[str, Any], kb: Kb, options: Options, asked: WhyRequest) -> Subject:
        """Its steps and conditions over whole streams, for `why`. Raises OxiseqError, EventError, KbError."""

    def states(
        self, query: Q, streams: Mapping[str, Any], kb: Kb, options: Options, asked: WhyRequest, points: int
    ) -> tuple[Point, ...]:
        """How many partial matches waited at each edge of its automaton, at `points` instants at most. Raises
        OxiseqError where there is no such automaton; EventError, KbError, LimitError."""
        raise OxiseqError(f"{self.syntax.title} has no automaton with partial matches to count: SPAseq has")

    def reach(self, query: Q, at: int, options: Options) -> ReadSpan:
        """Which events decide the matches that end at `at` (µs). Raises OxiseqError where `matches_at` does."""
        raise OxiseqError(f"{self.syntax.title} finds no matches that end at one instant: SPAseq and CEQL do")

    def every_match(self, query: Q) -> Q:
        """The query that has an answer for each match of this one, and for each of an instant: what `matches_at` has
        some of."""
        return query

    def matches_at(
        self, query: Q, streams: Mapping[str, Any], kb: Kb, options: Options, asked: WhyRequest, page: Page
    ) -> Matches:
        """Some of the matches that end at one instant, without listing the others. Raises OxiseqError where a language
        has none; EventError, KbError, LimitError."""
        raise OxiseqError(f"{self.syntax.title} finds no matches that end at one instant: SPAseq and CEQL do")

    def why(self, query: Q, streams: Mapping[str, Any], kb: Kb, options: Options, asked: WhyRequest) -> Why:
        """Why it matches or does not, over whole streams. Raises OxiseqError, EventError, KbError, LimitError."""
        return why.why_of(self.subject(query, streams, kb, options, asked), asked.provenance)

    # --- what most languages have unchanged ---------------------------------------------------------

    def resume(self, state: bytes, run: Run, terms: TermDictionary, kb: KnowledgeBase) -> Run:
        """A run that continues from a snapshot of a run of the same plan. Raises SnapshotError, KbError."""
        return saving.restore(state, cast("saving.AnyPlan", run.plan), terms, kb)

    def planned(self, query: Q, terms: TermDictionary, kb: KnowledgeBase, options: Options) -> tuple[Run, Shape]:
        """As `compile`, with an error of the query where it is nested too deeply to be planned."""
        try:
            with uncollected():
                return self.compile(query, terms, kb, options)
        except RecursionError:
            text = getattr(query, "text", "")
            raise QueryError("the query is nested too deeply", query.span, text, code="depth") from None

    def driver(self, query: Q, kb: Kb, options: Options) -> Driver:
        """The query over streams that are to be attached. Raises QueryError, OxiseqError, KbError."""
        run, shape = self.planned(query, TermDictionary(), knowledge_of(kb), options)
        refuse_own_results(StreamUse.of("query", shape))
        names = self.names(query, run.plan)
        watch = Watch(
            reads_of(self.own(query), getattr(run.plan, "rules", ())), shape.terms, partial(self._has_name, kb)
        )
        return Driver(run, shape, names, self.opener(query, options), options, watch)

    def _has_name(self, kb: Kb, name: str) -> bool:
        """Whether the knowledge base has a term of this name, which a pattern over events and facts may mean."""
        if kb is None or not self.asks_kb:
            return False
        ways = (f"?s <{name}> ?o", f"?s ?p <{name}>", f"<{name}> ?p ?o")
        where = " UNION ".join(f"{{ {way} }} UNION {{ GRAPH ?g {{ {way} }} }}" for way in ways)
        return any(True for _ in knowledge_of(kb).solutions(f"SELECT (1 AS ?there) WHERE {{ {where} }} LIMIT 1"))

    def names(self, query: Q, plan: Any) -> Mapping[str, str]:
        """Name in the query → IRI of the streams that it reads, in its order."""
        return {iri: iri for iri in plan.streams}

    def opener(self, query: Q, options: Options) -> Opener:
        """How streams of the query that are given whole are read."""
        return graphs_opener(query, options)

    def graphs(self, query: Q) -> Iterable[tuple[NamedNode, Span]]:
        """Graphs of the knowledge base that it names, and where."""
        return [(each.name, each.span) for each in parts(query, GraphPattern) if isinstance(each.name, NamedNode)]

    def origin(self, run: Run) -> int | None:
        """The t (µs) with which a run of the same query over any other events has the tumbling windows of this one;
        None where that says nothing."""
        return None

    def evidence(
        self,
        query: Q,
        events: Mapping[str, tuple[int, ...]],
        row: Mapping[str, Term | None],
        history: History,
        kb: KnowledgeBase,
        bounds: Bounds,
    ) -> Evidence | None:
        """What a match rests on, which has this `row` and these times (µs) of events, by pattern; `history` has its
        events and no others. None where the language cannot say. Raises KbError."""
        return None

    # --- over several runs, of which each has a part of the events: Spark -----------------------------

    def own(self, query: Q) -> AnyQuery:
        """The query as whoever has no plug-ins can read it: in a language of ours, where it is lowered to one."""
        return query

    def correlation(self, query: Q, plan: Any) -> Correlation:
        """How its events can be dealt out to several runs; `plan` is that of its run."""
        return Correlation((), reason=self.whole, span=query.span)

    def with_key(self, query: Q, by: tuple[Variable, ...]) -> Q:
        """The query with the key's variables among its columns, added ones last; by `correlation`."""
        return query
