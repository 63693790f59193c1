"""Events of a stream come out in order of time, then of arrival, as soon as they are complete, in whatever batches they
have come."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from profiles import drawn
from pyoxigraph import Literal, NamedNode, Triple

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.order.arrivals import Arrivals
from oxiseq.engine.snapshot.container import pack, unpack
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import SameTerms, SavedTerms

P = NamedNode("http://e/p")


def events_of(batch: EventBatch, terms: TermDictionary) -> list[tuple[int, int]]:
    """Times and numbers."""
    numbers = [int(terms.term(i).value) for i in batch.object.tolist()]  # type: ignore[union-attr]
    return list(zip(batch.time.tolist(), numbers, strict=True))


def moved(before: Arrivals, move: str, terms: TermDictionary) -> Arrivals:
    """One that goes on, and is in the same state."""
    if move == "save":
        saved = SavedTerms(terms)
        state = unpack(pack({"order": before.save(saved)}))["order"]
        after = Arrivals(1)
        after.restore(state, SameTerms(terms))
    elif move == "copy":
        after = before.copy()
    else:
        return before
    assert after.same(before) and before.same(after)
    assert (after.events, after.late, after.open, after.passed) == (
        before.events,
        before.late,
        before.open,
        before.passed,
    )
    before.close()
    before.take()
    return after


@given(
    st.lists(st.lists(st.integers(0, 30), max_size=4), max_size=12),
    st.integers(0, 8),
    st.one_of(st.none(), st.integers(0, 20)),
    st.lists(st.sampled_from(["", "save", "copy"]), min_size=12, max_size=12),
)
@drawn(100)
def test_events_come_out_in_order_and_late_ones_do_not(
    pushes: list[list[int]], lateness: int, start: int | None, moves: list[str]
) -> None:
    """Whether the order goes on in another process or by itself, too; what it goes on from does not change."""
    terms = TermDictionary()
    arrivals = Arrivals(1, lateness, start)
    waiting: list[tuple[int, int]] = []
    largest, number, late = -1 << 60, 0, 0
    for times, move in zip(pushes, moves, strict=False):
        some = [(time, number + k) for k, time in enumerate(times)]
        number += len(times)
        refused = arrivals.push(0, encode_events([(t, [Triple(P, P, Literal(n))]) for t, n in some], terms))
        expected = []
        for time, n in some:
            if time < largest - lateness:
                expected.append((time, n))
            elif start is None or time >= start:
                waiting.append((time, n))
            largest = max(largest, time)
        late += len(expected)
        assert events_of(refused, terms) == expected
        assert arrivals.late == late
        done = sorted((e for e in waiting if e[0] < largest - lateness), key=lambda e: e[0])
        waiting = [e for e in waiting if e not in done]
        (batch,) = arrivals.take()
        assert events_of(batch, terms) == done
        assert arrivals.open == bool(waiting)
        arrivals = moved(arrivals, move, terms)
    arrivals.close()
    (batch,) = arrivals.take()
    assert events_of(batch, terms) == sorted(waiting, key=lambda e: e[0])
    assert not arrivals.open
