"""How a query over the store is answered, as plain facts, then as text, Graphviz, a picture or JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from oxiseq.engine.flow.explain import Step, steps
from oxiseq.engine.standing import ELSEWHERE, Upheld
from oxiseq.grammar.records import dataclass
from oxiseq.languages.explanation import Explanation, network, operator_lines
from oxiseq.pictures.drawing import Arrow, Drawing, Node

_FOLLOWED: Final = "incremental: each added or removed quad updates the answer, no query is repeated"


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
        nodes, arrows = [Node("store", "store")], list[Arrow]()

        def source(step: Step) -> str | None:
            return "store" if step.what in ("quads", "graphs") else None

        ahead = network(self.operators, nodes, arrows, source=source)
        nodes.append(Node("answer", self.form, True, self.state))
        arrows += [Arrow(name, "answer") for name in (ahead[-1] if ahead else ["store"])]
        return Drawing(f"{self.form}: state kept for the store", nodes, arrows, network=True)

    @property
    def summary(self) -> tuple[str, ...]:
        facts = f"{self.rows:,} rows, {self.kept:,} rows kept, {self.shared:,} quads"
        return (f"{self.form}: {self.evaluation}", facts)


def explain_standing(upheld: Upheld) -> StandingExplanation:
    """The explanation of a query at work."""
    plan = upheld.plan
    operators = () if upheld.elsewhere else steps(plan.flow, plan.names, dict(plan.query.prefixes))
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
