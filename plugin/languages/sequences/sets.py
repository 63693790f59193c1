"""What determinised sets do for a query: typed predicates, and CORE's automaton over its formula's positions."""

from __future__ import annotations

from collections.abc import Iterator

from oxiseq.engine.cea.composed import not_composed
from oxiseq.engine.cea.listed import MOST_LISTED
from oxiseq.engine.cea.plan import CeaPlan
from oxiseq.engine.cea.positions import bits
from oxiseq.engine.plan.keyed_tuples import tuple_correlation
from oxiseq.engine.run.tuple_family import why_not_alike
from oxiseq.grammar.ceql.texts import (
    render_formula,
    render_groups,
    render_order,
    render_predicate,
    render_told,
    render_window,
)
from oxiseq.grammar.ceql_algebra import aggregates
from oxiseq.grammar.render import render_clause
from oxiseq.languages.explanation import WITH_EQUALS
from oxiseq.languages.sequences.facts import (
    BEFORE_ENUMERATION,
    ENDS_ENUMERATION,
    AtomFacts,
    EdgeFacts,
    GpmFacts,
    StateFacts,
    StreamFacts,
)


class SetsExplainer:
    """A state for each event that the formula names."""

    form = "SELECT"

    def __init__(self, plan: CeaPlan) -> None:
        self.plan = plan

    def columns(self) -> tuple[str, ...]:
        """What it selects."""
        totals = self.plan.summary
        return self.plan.runner.variables if totals is None else tuple(map(render_told, totals.columns))

    def sequence(self) -> str:
        """What is looked for, in a line."""
        return render_formula(self.plan.query.formula)

    def window(self) -> str:
        """WITHIN, or `none`."""
        window = self.plan.query.window
        return "none" if window is None else render_window(window).removeprefix("WITHIN ")

    def partition(self) -> str:
        """What PARTITION BY names."""
        return ", ".join(f"[{attribute.value}]" for attribute in self.plan.by)

    def filters(self) -> Iterator[str]:
        """Conditions on whole matches, and what else partitions need."""
        yield from ()  # they are in the formula

    def selection(self) -> str:
        """When a strategy chooses."""
        strict = self.plan.runner.strict
        return "each event of a match directly follows the one before" if strict else BEFORE_ENUMERATION

    def limit(self) -> str:
        """How LIMIT is kept."""
        return ENDS_ENUMERATION

    def ranked(self) -> Iterator[str]:
        """ORDER BY, SAMPLE, LIMIT."""
        query = self.plan.query
        if query.order is not None:
            yield render_order(query.order)
        if query.sample is not None:
            yield render_clause(query.sample)
        if query.limit is not None:
            yield render_clause(query.limit)

    def ranking(self) -> str:
        """How those are found."""
        ranking = self.plan.ranking
        if self.plan.query.sample is not None:
            return "drawn from the matches of an instant without listing the others"
        assert ranking is not None, "else there is a SAMPLE"
        if ranking.listed is not None:
            return f"lists every match of an instant, {MOST_LISTED} at most: {ranking.listed}"
        return "found among the matches of an instant without listing the others"

    def groups(self) -> Iterator[str]:
        """How matches become rows of groups."""
        summary = self.plan.summary
        assert summary is not None, "matches are rows of groups"
        if not summary.by:
            yield "one group for each event at which matches end"
        yield from render_groups(summary)
        because = not_composed(self.plan)
        if because is None:
            yield "matches are counted by composed windows, none is listed"
        elif self.plan.runner.ambiguous and any(aggregate.arg is not None for aggregate in aggregates(summary)):
            listed = f"{MOST_LISTED} at most, where several variables may hold an event"
            yield f"matches are counted by visiting the live nodes of an instant; they are listed, {listed}"
        else:
            yield f"matches are counted by visiting the live nodes of an instant, none is listed: {because}"
        yield "reported once, at the event at which they end"

    def correlation(self) -> str:
        """How events could be dealt out to several runs."""
        return tuple_correlation(self.plan).text()

    def sharing(self) -> str:
        """What it shares with other queries."""
        why = why_not_alike(self.plan)
        if why is not None:
            return f"{WITH_EQUALS}; nothing with others: {why}"
        return (
            f"{WITH_EQUALS}; one run with those that differ in predicates of their events and lengths of windows only"
        )

    # --- letters and automaton ------------------------------------------------------------------------

    def streams(self) -> Iterator[StreamFacts]:
        """Those of the query."""
        for stream, iri in zip(self.plan.query.streams, self.plan.streams, strict=True):
            yield StreamFacts(stream.name, iri, None)

    def gpms(self) -> Iterator[GpmFacts]:
        """Letters that are graph patterns."""
        yield from ()

    def atoms(self) -> Iterator[AtomFacts]:
        """Letters that are typed predicates."""
        vocab = self.plan.query.vocab or ""
        for number, atom in enumerate(self.plan.letters):
            yield AtomFacts(number, atom.type.removeprefix(vocab), tuple(map(render_predicate, atom.predicates)))

    def states(self) -> Iterator[StateFacts]:
        """The places where a match may stand."""
        sets, atoms = self.plan.runner, [atom.text for atom in self.atoms()]
        for n, atom in enumerate(sets.atom_of):
            held = tuple(v for i, v in enumerate(sets.variables) if sets.masks[n] >> i & 1)
            yield StateFacts(n, atoms[atom], bool(sets.positions.last >> n & 1), held=held)

    def edges(self) -> Iterator[EdgeFacts]:
        """The waits between them."""
        positions = self.plan.runner.positions
        yield EdgeFacts(-1, "", "at any event", targets=tuple(bits(positions.first)))
        for n in range(len(positions.letters)):
            if positions.at_once[n]:
                yield EdgeFacts(n, ":", "at the very next event", targets=tuple(bits(positions.at_once[n])))
            if positions.later[n]:
                yield EdgeFacts(n, ";", "at any later event", targets=tuple(bits(positions.later[n])))
