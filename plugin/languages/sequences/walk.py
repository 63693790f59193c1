"""The walk over a plan that every explanation is: what is the same for both runners, in its order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from oxiseq.engine.kernels.matches.records import EVERYTHING
from oxiseq.engine.matches.plan import AnySequencePlan, forgotten_by
from oxiseq.grammar.render_clauses import render_limit
from oxiseq.languages.sequences.explanation import SequenceExplanation
from oxiseq.languages.sequences.facts import AtomFacts, EdgeFacts, GpmFacts, StateFacts, StreamFacts

P = TypeVar("P", bound=AnySequencePlan)


class Explainer(ABC, Generic[P]):
    """Writes down one plan, whose runner decides which explainer it has (explain.py). Raises KbError."""

    def __init__(self, plan: P) -> None:
        self.plan = plan

    def explain(self) -> SequenceExplanation:
        """All of it."""
        plan = self.plan
        return SequenceExplanation(
            form=self.form(),
            columns=self.columns(),
            sequence=self.sequence(),
            runner=f"{plan.runner.name}, since {plan.because}",
            window=self.window(),
            clauses=tuple(self.clauses()),
            correlation=self.correlation(),
            sharing=self.sharing(),
            streams=tuple(self.streams()),
            gpms=tuple(self.gpms()),
            atoms=tuple(self.atoms()),
            states=tuple(self.states()),
            edges=tuple(self.edges()),
        )

    def clauses(self) -> Iterator[str]:
        """PARTITION BY, strategy, CONSUME BY, ORDER BY, SAMPLE and LIMIT, and what is done for them."""
        query, plan = self.plan.query, self.plan
        if plan.by:
            yield f"PARTITION BY {self.partition()}: an event is split by its values, all partitions share one run"
        yield from self.filters()
        if query.selection is not None:
            yield f"SELECT {query.selection.strategy.value}: {self.selection()}"
        if query.consumption is not None:
            what = "all" if forgotten_by(query) == EVERYTHING else "all of its partition"
            yield f"CONSUME BY: a match makes {what} that has started forgotten"
        if plan.summary is not None:
            yield from self.groups(plan.summary)
        elif plan.ranking is not None or query.sample is not None:
            yield f"{' '.join(self.ranked())}: {self.ranking(plan.ranking)}"
        elif query.limit is not None:
            yield f"{render_limit(query.limit)}: {self.limit()}"

    # --- what the language writes -------------------------------------------------------------------

    def form(self) -> str:
        """SELECT, ASK, CONSTRUCT."""
        return "SELECT"

    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """What it selects."""

    @abstractmethod
    def sequence(self) -> str:
        """What is looked for, in a line."""

    @abstractmethod
    def window(self) -> str:
        """WITHIN, or `none`."""

    @abstractmethod
    def partition(self) -> str:
        """What PARTITION BY names."""

    def filters(self) -> Iterator[str]:
        """Conditions on whole matches, and whatever else a clause needs of events."""
        yield from ()

    def selection(self) -> str:
        """When a strategy chooses."""
        return "chosen before matches are enumerated"

    @abstractmethod
    def ranked(self) -> Iterator[str]:
        """ORDER BY, SAMPLE, LIMIT."""

    @abstractmethod
    def ranking(self, ranking: Any) -> str:
        """How those are found."""

    @abstractmethod
    def groups(self, summary: Any) -> Iterator[str]:
        """How matches become rows of groups."""

    def limit(self) -> str:
        """How LIMIT is kept."""
        return "ends the enumeration"

    # --- what the runner does -----------------------------------------------------------------------

    @abstractmethod
    def correlation(self) -> str:
        """How events could be dealt out to several runs."""

    @abstractmethod
    def sharing(self) -> str:
        """What it shares with other queries."""

    @abstractmethod
    def streams(self) -> Iterator[StreamFacts]:
        """Those of the query."""

    def gpms(self) -> Iterator[GpmFacts]:
        """Letters that are graph patterns."""
        yield from ()

    def atoms(self) -> Iterator[AtomFacts]:
        """Letters that are typed predicates."""
        yield from ()

    @abstractmethod
    def states(self) -> Iterator[StateFacts]:
        """The places where a match may stand."""

    @abstractmethod
    def edges(self) -> Iterator[EdgeFacts]:
        """The waits between them."""
