"""What comes finds what has happened: as many pairs as there are near enough, however it comes and is saved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from loaded import load
from pyoxigraph import Store

from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.flow.epsparql.query import compile_intervals
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.run.intervals import IntervalRun
from oxiseq.engine.snapshot.saving import restore, save
from oxiseq.engine.terms.dictionary import TermDictionary

EVENTS = 2_600
LONGEST = 40
PLAIN = "{ ?a :p ?x } SEQ { ?b :q ?x }"
LOOSE = "{ ?a :p ?x OPTIONAL { ?a :none ?y } } SEQ { ?b :q ?x OPTIONAL { ?b :never ?y } }"
JOIN = "?a :p ?x . ?b :q ?x"


def event(time: int) -> tuple[int, str]:
    return time, f"<http://e/s{time}> <http://e/{'pq'[time * 7 % 3 % 2]}> {time * 5 % 11} ."


def expected(join: bool) -> Counter[tuple[int, int]]:
    """Pairs of a p and a q of one value, at most so far apart, p first unless it is a join."""
    found: Counter[tuple[int, int]] = Counter()
    for second in range(EVENTS):
        for first in range(max(0, second - LONGEST), second):
            kinds = {i: i * 7 % 3 % 2 for i in (first, second)}
            one = kinds[first] == 0 and kinds[second] == 1
            if (one or (join and kinds[first] == 1 and kinds[second] == 0)) and first * 5 % 11 == second * 5 % 11:
                found[first, second] += 1
    return found


def answers(where: str, size: int) -> Iterator[tuple[int, int]]:
    """Pushed so many at a time, and saved and restored now and then."""
    query = load(f"PREFIX : <http://e/> SELECT * {{ {where} FILTER(getDURATION() <= {LONGEST}) }}", "epsparql")
    plan, terms, kb = compile_intervals(query, (), ["urn:s"]), TermDictionary(), StoreKb(Store())
    run = IntervalRun(plan, terms, kb)
    for low in range(0, EVENTS, size):
        run.push("urn:s", encode_events([event(t) for t in range(low, min(low + size, EVENTS))], terms))
        if low + size >= EVENTS:
            run.close()
        for batch in run.advance():
            yield from zip(batch.event_time[::2].tolist(), batch.time.tolist(), strict=True)
        if low // size % 7 == 3:
            data, terms = save(run, terms), TermDictionary()
            run = restore(data, plan, terms, kb)


@pytest.mark.parametrize("where", [PLAIN, LOOSE, JOIN])
@pytest.mark.parametrize("size", [53, 5_000])
def test_what_is_near_enough_is_found(where: str, size: int) -> None:
    found = Counter(answers(where, size))
    assert found == expected(where == JOIN)
    assert len(found) > 1_000
