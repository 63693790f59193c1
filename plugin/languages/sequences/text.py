"""Explanations for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from oxiseq.languages.sequences.facts import EdgeFacts, GpmFacts, KbFacts, SequenceFacts, StateFacts, WaitFacts


def as_text(explanation: SequenceFacts) -> str:
    """The whole explanation, for a terminal."""
    return "\n".join(_lines(explanation)) + "\n"


def _lines(explanation: SequenceFacts) -> Iterator[str]:
    between = ", " if explanation.gpms == () or explanation.becomes else " "
    yield f"{explanation.form} {between.join(explanation.columns)}".rstrip()
    yield explanation.sequence
    yield f"runner: {explanation.runner}"
    if explanation.becomes:
        yield f"runs as: {explanation.becomes}"
    yield f"window: {explanation.window}"
    yield from explanation.clauses
    yield f"distributed to several runs, as on Spark: {explanation.correlation}"
    yield f"shares: {explanation.sharing}"
    yield ""
    yield "streams"
    for stream in explanation.streams:
        slots = "" if stream.slots is None else f": {_count(stream.slots, 'triple pattern')} looked for in one pass"
        yield f"  {stream.name} <{stream.iri}>{slots}"
    yield ""
    if explanation.gpms:
        yield "graph patterns"
    for gpm in explanation.gpms:
        yield from _gpm(gpm)
    if explanation.atoms:
        yield "atoms, typed predicates on one event"
    for atom in explanation.atoms:
        yield f"  {atom.number}: {atom.text}"
    yield ""
    yield "automaton"
    yield "  start"
    yield from _leaving(explanation, -1)
    for state in explanation.states:
        yield _state(state)
        yield from _leaving(explanation, state.number)


def _gpm(gpm: GpmFacts) -> Iterator[str]:
    role = ", negated" if gpm.negated else ""
    yield f"  {gpm.name} on {gpm.stream}{role}: {_answered(gpm)}"
    for condition in gpm.filters:
        yield f"    filter {condition.text}: {condition.how}"
    if gpm.keeps:
        yield f"    keeps {' '.join(gpm.keeps)}"
    if gpm.kb is not None:
        yield from _kb(gpm.kb)


def _answered(gpm: GpmFacts) -> str:
    if gpm.answered == "columns":
        return f"columnar, {_count(gpm.patterns, 'triple pattern')}"
    if gpm.answered == "always":
        return "every event, the pattern is empty"
    return f"operators over {_count(gpm.patterns, 'triple pattern')} in columns ({gpm.reason})"


_KB_MEANS: Final = {
    "semi-join": "rows are checked, it adds nothing to them",
    "late enrichment": "rows are checked, matches are enriched when written",
    "join": "row by row",
}


def _kb(kb: KbFacts) -> Iterator[str]:
    rows = "rows not known without --kb" if kb.rows is None else _count(kb.rows, "row")
    meaning = _KB_MEANS[kb.how]
    on = f" on {' '.join(kb.shared)}" if kb.shared else ""
    yield f"    knowledge base: {kb.how}{on} ({meaning}), {rows}"
    yield f"    gives {' '.join(kb.variables)}"
    for condition in kb.filters:
        yield f"    filter with the knowledge base {condition}"


def _state(state: StateFacts) -> str:
    final = ", a match" if state.final else ""
    bound = f" (may have bound {', '.join(state.bound)})" if state.bound else ""
    held = "" if state.held is None else f", held by {', '.join(state.held) or 'no variable'}"
    return f"  state {state.number}, after {state.letter}{held}{final}{bound}"


def _leaving(explanation: SequenceFacts, source: int) -> Iterator[str]:
    for edge in explanation.edges:
        if edge.source == source:
            yield from _edge(edge)


def _edge(edge: EdgeFacts) -> Iterator[str]:
    if edge.targets:
        op = f" ({edge.op})" if edge.op else ""
        yield f"    {edge.when}{op} → state {', '.join(map(str, edge.targets))}"
        return
    if edge.op == "window" and not edge.then:
        yield "    waits for the window's end, then is a match"
    if edge.age:
        then = f"; older, {edge.then}" if edge.then else ""
        yield f"    a run that has waited {edge.age}{then}"
    if edge.after:
        yield f"    of the negated group has come: {', '.join(edge.after)}"
    for step in edge.steps:
        yield f"    {step.letter} is the group's next step: {_wait(step)}"
    for arm in edge.arms:
        op = "" if edge.source < 0 else f" {edge.when} ({edge.op})"
        yield f"    {arm.letter}{op} → state {arm.target}: {_wait(arm)}"
    for guard in edge.guards:
        yield f"    not {guard.letter}: {_wait(guard)}"
    for span in edge.lasting:
        yield f"      the part that it lies in {span}"
    if edge.source >= 0:
        yield f"      runs are distinguished by {', '.join(edge.live) or 'nothing: all are one group'}"


def _wait(wait: WaitFacts) -> str:
    return ", ".join([wait.index, *wait.conditions])


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
