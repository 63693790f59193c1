"""Why, for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from oxiseq.engine.events.time import to_text
from oxiseq.engine.terms.texts import Term, term_text
from oxiseq.languages.reasons.report import Funnel, Near, Reason, Why

_WORDS = {
    "window": "the window",
    "contiguity": "contiguity",
    "bound": "a bound",
    "negation": "the negation",
    "filter": "a filter",
    "knowledge base": "the knowledge base",
    "join": "a join",
    "partition": "the partitions",
    "strategy": "the strategy",
    "consumption": "consumption",
    "limit": "the limit",
    "constant": "a constant",
    "sample": "the sample",
    "order": "the order in time",
    "pattern": "a part",
}

NO_REASON = "leaving out a single condition would not change that: see how many events the patterns matched"


def as_text(why: Why, time: Callable[[int], str] = to_text) -> str:
    """The whole report; `time` writes times."""
    return "\n".join(lines(why, time)) + "\n"


def lines(why: Why, time: Callable[[int], str] = to_text) -> Iterator[str]:
    """The same by lines."""
    late = f", {why.late} events came too late and were not seen" if why.late else ""
    yield f"{'at least ' * why.more}{count(why.found, 'match', 'matches')}{late}"
    yield from why.notes
    words = why.wording
    yield words.patterns
    for funnel in why.gpms:
        yield from _funnel(funnel, time, why.wording.mark)
    yield f"partial matches by step: {words.steps}{'' if why.at is None else f', at {time(why.at)}'}"
    for stage in why.stages:
        yield f"  {stage.text}:{words.verb} {'at least ' * stage.more}{count(stage.matches, words.one, words.many)}"
    if why.stopped is not None:
        yield f"  no partial match completes `{why.stopped}`"
    yield from _reasons(why, time)


def _funnel(funnel: Funnel, time: Callable[[int], str], mark: str) -> Iterator[str]:
    saw = f" saw {count(funnel.saw, 'event', 'events')} of {funnel.stream}" if funnel.stream else ""
    yield f"  {funnel.gpm}{saw}"
    before = funnel.saw
    for step in funnel.steps:
        if step.kind == "holds":
            yield f"    {step.events:,} {step.text}"
            continue
        yield f"    {step.events:,} passed {part_text(step.kind, step.text)}"
        if step.events < before:
            for miss in step.misses:
                yield f"      not {time(miss.time)}{values_text(miss.values, mark)}"
        before = step.events


def part_text(kind: str, text: str) -> str:
    return f"FILTER({text})" if kind in ("filter", "kb filter") else text


def _reasons(why: Why, time: Callable[[int], str]) -> Iterator[str]:
    if why.stopped is not None and not why.reasons:
        yield f"  {NO_REASON}"
        return
    if why.reasons:
        yield "near misses: without one condition"
    for reason in why.reasons:
        yield f"  {reason_text(reason)}"
        for near in reason.nearest:
            yield f"    {near_text(near, time, why.wording.mark)}"


def reason_text(reason: Reason) -> str:
    """Without which condition there would be how many more."""
    least = "at least " * reason.more
    return f"without {_WORDS[reason.kind]}, {reason.condition}: {least}{reason.matches:,} more"


def near_text(near: Near, time: Callable[[int], str], mark: str) -> str:
    """A match that one condition prevents."""
    events = ", ".join(f"{gpm} at {' '.join(time(t) for t in times)}" for gpm, times in near.events.items())
    words = f": {near.words}" if near.words else ""
    return f"{events}{values_text(near.values, mark)}{words}"


def values_text(values: Mapping[str, Term | None], mark: str) -> str:
    if not values:
        return ""
    return " with " + ", ".join(f"{mark}{name} = {'unbound' if t is None else short(t)}" for name, t in values.items())


def short(term: Term) -> str:
    """A literal without its marks."""
    text = term_text(term)
    return text.split("^^")[0].strip('"') if "XMLSchema#" in text and text.startswith('"') else text


def count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
