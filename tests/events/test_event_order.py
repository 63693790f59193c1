"""The assembler against a plain model: any mixture of quads and times, in blocks of any size."""

from __future__ import annotations

import itertools
import random

from event_contents import Content, batch_contents
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad

from oxiseq.engine.events.assembler import EventAssembler
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.time import to_literal
from oxiseq.engine.terms.dictionary import TermDictionary

S, P = NamedNode("urn:s"), NamedNode("urn:p")
Item = tuple[int, str]
"""Of event number n: "time", "own" (the time inside its graph) or a value."""


def to_quad(item: Item) -> Quad:
    number, what = item
    name = NamedNode(f"urn:e{number}")
    if what in ("time", "own"):
        return Quad(name, GENERATED_AT, to_literal(number), name if what == "own" else None)
    return Quad(S, P, Literal(what), name)


def assemble(items: list[Item], cuts: list[int], batch_events: int = 2) -> tuple[Content, list[str]]:
    terms, faults = TermDictionary(), []
    assembler = EventAssembler(terms, GENERATED_AT, lambda line, reason: faults.append(reason), batch_events)
    bounds = [0, *sorted(cut % (len(items) + 1) for cut in cuts), len(items)]
    batches = []
    for start, stop in itertools.pairwise(bounds):
        batches += assembler.read_quads([to_quad(item) for item in items[start:stop]])
    batches += assembler.finish()
    assert all(len(batch) == batch_events for batch in batches[:-1])
    return batch_contents(batches, terms), faults


def model(items: list[Item]) -> tuple[Content, int]:
    """The rules of kernels/events/assembly.py, read over the whole list again for each step."""
    done: list[int] = []
    lost, current, again = 0, -1, False
    held: dict[int, list[str]] = {}
    timed: set[int] = set()

    def close() -> None:
        if current in held and current in timed and not again:
            done.append(current)

    for number, what in items:
        if what != "time" and number != current:
            close()
            current, again = number, number in done
            lost += again
            held.setdefault(number, [])
        if what in ("time", "own"):
            timed.add(number)
            if number in held and number != current and number not in done:
                done.append(number)
        elif not again:
            held[number].append(what)
    close()
    lost += len([number for number in held if number not in done]) + len(timed - set(held))
    return [(number, [(str(S), str(P), str(Literal(value))) for value in held[number]]) for number in done], lost


items = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["time", "own", "x", "y"])), max_size=25)
cuts = st.lists(st.integers(0, 30), max_size=4)


@given(items, cuts)
def test_any_mixture_follows_the_rules(mixture: list[Item], cuts: list[int]) -> None:
    events, faults = assemble(mixture, cuts)
    expected, lost = model(mixture)
    assert events == expected
    assert len(faults) == lost


@given(st.lists(st.integers(0, 3), max_size=8), st.randoms(use_true_random=False), cuts)
def test_contiguous_events_with_their_time_beside_them_are_all_read(
    sizes: list[int], chance: random.Random, cuts: list[int]
) -> None:
    mixture: list[Item] = []
    for number, size in enumerate(sizes):
        event: list[Item] = [(number, f"v{value}") for value in range(size)]
        event.insert(chance.randint(0, size), (number, chance.choice(["time", "own"]) if size else "own"))
        mixture += event
    events, faults = assemble(mixture, cuts)
    assert faults == []
    assert [(time, len(triples)) for time, triples in events] == list(enumerate(sizes))
