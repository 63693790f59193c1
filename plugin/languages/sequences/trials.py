"""`why` of a sequence in whatever language: the query without one condition is run over all events, and what it finds
that the query does not find is what the condition leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

from oxiseq.engine.errors import OxiseqError
from oxiseq.grammar.algebra import Limit, Query, Strategy
from oxiseq.grammar.ceql_algebra import CeqlQuery
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.render_clauses import render_clause
from oxiseq.languages.reasons.report import Near, Reason

F = TypeVar("F")
Q = TypeVar("Q", Query, CeqlQuery)


@dataclass(frozen=True, slots=True)
class Trial(Generic[F]):
    """The query without one condition. `run`: what it finds, each with what distinguishes it, and whether there may be
    more; `nearest`: some of these, the nearest first."""

    kind: str
    text: str
    run: Callable[[], tuple[Sequence[tuple[Hashable, F]], bool]]
    nearest: Callable[[Sequence[F]], Iterable[Near]]


def reasons_of(trials: Iterable[Trial[F]], known: Container[Hashable]) -> Iterator[Reason]:
    """The conditions without which something is found that is not `known`."""
    for trial in trials:
        try:
            found, more = trial.run()
        except OxiseqError:
            continue  # a variant that the engine refuses shows nothing
        new = [each for key, each in found if key not in known]
        if new:
            yield Reason(trial.kind, trial.text, len(new), more, tuple(trial.nearest(new)))


def without_clauses(query: Q, most: int) -> Iterator[tuple[str, str, Q]]:
    """Each clause that leaves whole matches out: its kind, its text, and the query without it, which finds `most` of an
    end. STRICT is none of them: it is about the events of a match."""
    capped = query if query.limit is not None else replace(query, limit=Limit(most))
    if query.selection is not None and query.selection.strategy is not Strategy.STRICT:
        yield "strategy", f"SELECT {query.selection.strategy.value}", _every(capped)
    if query.consumption is not None:
        yield "consumption", render_clause(query.consumption), replace(capped, consumption=None)
    if query.limit is not None:
        yield "limit", render_clause(query.limit), replace(query, limit=Limit(most))
    if query.sample is not None:
        yield "sample", render_clause(query.sample), replace(capped, sample=None)


def _every(query: Any) -> Any:
    """Without its strategy."""
    if isinstance(query, CeqlQuery):
        return replace(query, selection=None)
    return replace(query, form=replace(query.form, selection=None))
