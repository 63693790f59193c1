"""How a query over the store is answered, as plain facts, then as text, Graphviz, a picture or JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from oxiseq.engine.flow.explain import Step, steps
from oxiseq.engine.standing import ELSEWHERE, Upheld
from oxiseq.grammar.records import dataclass
from oxiseq.languages.explanation import Explanation, operator_lines
from oxiseq.pictures.drawing import Arrow, Drawing, Node

_FOLLOWED: Final = "incremental: each added or removed quad updates the answer, no query is repeated"
_UNSEEN: Final = frozenset(("columns", "arranged by", "consolidate", "less"))
"""Operators that a picture does without."""


@dataclass(frozen=True, slots=True)
class StandingExplanation(Explanation):
    """All of it. evaluation: how it is answered, and why; rows: of its answer; kept: rows that its operators keep for
    it alone; shared: quads that they read in memory, with other queries; asks: the query to the store, if it has
    one."""

    form: str
    columns: tuple[str, ...]
    state: str
    evaluation: str
    operators: tuple[Step, ...]
    rows: int
    kept: int
    shared: int
    asks: str = ""

    def __str__(self) -> str:
        return "\n".join(_lines(self)) + "\n"

    @property
    def drawing(self) -> Drawing:
        title = f"{self.form}: state kept for the store"
        return Drawing(title, [*self._nodes()], [*self._arrows()], network=True)

    @property
    def summary(self) -> tuple[str, ...]:
        facts = f"{self.rows:,} rows, {self.kept:,} rows kept, {self.shared:,} quads"
        return (f"{self.form}: {self.evaluation}", facts)

    def _nodes(self) -> Iterator[Node]:
        yield Node("store", "store")
        for step in self.operators:
            if step.what not in _UNSEEN:
                label, *more = step.detail or ("",)
                yield Node(f"o{step.number}", f"{step.what} {label}".strip(), note=", ".join(more))
        yield Node("answer", self.form, True, self.state)

    def _arrows(self) -> Iterator[Arrow]:
        ahead: list[list[str]] = []
        for step in self.operators:
            before = list(dict.fromkeys(name for child in step.inputs for name in ahead[child]))
            if step.what in ("quads", "graphs"):
                before = ["store"]
            if step.what in _UNSEEN:
                ahead.append(before)
                continue
            name = f"o{step.number}"
            yield from (Arrow(each, name) for each in before)
            ahead.append([name])
        yield from (Arrow(name, "answer") for name in (ahead[-1] if ahead else ["store"]))


def explain_standing(upheld: Upheld) -> StandingExplanation:
    """The explanation of a query at work."""
    plan = upheld.plan
    operators = () if upheld.elsewhere else steps(plan.flow, {plan.flow.root: plan.names}, dict(plan.query.prefixes))
    evaluation = _FOLLOWED
    if upheld.elsewhere and upheld.state != "failed":
        evaluation = upheld.reason or ELSEWHERE
    elif upheld.state == "asked":
        evaluation = f"evaluated on the store again whenever a quad of one of its patterns changes: {upheld.reason}"
    elif upheld.state == "failed":
        evaluation = f"failed: {upheld.reason}"
    run = upheld.run
    kept, shared = (0, 0) if run is None else (run.records, sum(leaf.records for leaf in run.leaves))
    return StandingExplanation(
        plan.query.form,
        plan.columns,
        upheld.state,
        evaluation,
        operators,
        upheld.answer.size,
        kept,
        shared,
        "" if upheld.state == "followed" else plan.asks,
    )


def _lines(e: StandingExplanation) -> Iterator[str]:
    yield f"{e.form} {', '.join(f'?{c}' for c in e.columns)}".rstrip()
    yield f"evaluation: {e.evaluation}"
    yield f"rows: {e.rows:,}; kept for it: {e.kept:,} rows; read with others: {e.shared:,} quads"
    if e.asks:
        yield from ["", "asked", *(f"  {line}" for line in e.asks.strip().splitlines())]
    if e.operators:
        yield from ["", "operators", *operator_lines(e.operators)]
