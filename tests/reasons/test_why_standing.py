"""What `why` counts of a standing query, over what the store holds."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st
from profiles import drawn

import oxiseq

E = "http://example.org/"
TEXT = f"PREFIX : <{E}> SELECT ?a ?c {{ ?a :p ?b . ?b :q ?c FILTER(?c > 2) }}"
TRIPLES = st.sets(st.tuples(st.sampled_from("pq"), st.integers(0, 1), st.integers(0, 4)), max_size=8)


def standing(triples: set[tuple[str, int, int]], text: str = TEXT) -> oxiseq.StandingQuery:
    store = oxiseq.Store()
    lines = (f"<{E}a{s}> <{E}p> <{E}b{o}> ." if kind == "p" else f"<{E}b{s}> <{E}q> {o} ." for kind, s, o in triples)
    store.update(f"INSERT DATA {{ {' '.join(lines)} }}")
    query = store.register(text, language="sparql")
    assert isinstance(query, oxiseq.StandingQuery)
    return query


@drawn(20)
@given(TRIPLES)
def test_counts_are_those_of_plain_loops(triples: set[tuple[str, int, int]]) -> None:
    found = standing(triples).why()
    p = {t[1:] for t in triples if t[0] == "p"}
    q = {t[1:] for t in triples if t[0] == "q"}
    joined = [(x, y) for x, y in product(p, q) if x[1] == y[0]]
    passed = [(x, y) for x, y in joined if y[1] > 2]
    sizes = [len(p), len(joined), len(passed)]
    assert [stage.matches for stage in found.stages] == [*sizes, len(passed)]
    assert [step.events for step in found.gpms[0].steps] == [len(p), len(q)]
    assert found.found == len(passed) == sum(1 for _ in standing(triples).snapshot().rows)
    reached = next((n for n, size in enumerate(sizes) if not size), 2)
    assert found.stopped == (None if passed else found.stages[reached].text)
    told = {reason.kind: reason.matches for reason in found.reasons}
    if reached == 2:
        assert told == ({"filter": len(joined) - len(passed)} if len(joined) > len(passed) else {})
    elif reached == 1:
        others = sum(x[1] != y[0] for x, y in product(p, q))
        assert (told.get("join", 0), told["pattern"]) == (others, len(p))


def test_near_misses_have_values_and_answers_facts() -> None:
    found = standing({("p", 0, 0), ("q", 0, 2), ("q", 0, 1)}).why()
    (reason,) = found.reasons
    assert [near.values["c"].value for near in reason.nearest if near.values["c"]] == ["2", "1"]
    assert "without a filter, FILTER(?c > 2): 2 more" in str(found)
    (match,) = standing({("p", 0, 0), ("q", 0, 3)}).why().matches
    assert sorted(str(fact.predicate) for fact in match.facts) == [f"<{E}p>", f"<{E}q>"]


def test_of_an_aggregate_and_of_ask() -> None:
    text = f"PREFIX : <{E}> SELECT ?b (COUNT(*) AS ?n) {{ ?b :q ?c }} GROUP BY ?b HAVING(COUNT(*) > 2)"
    found = standing({("q", 0, 1), ("q", 0, 2)}, text).why()
    assert (found.stopped, found.stages[0].matches) == ("the answer, after GROUP BY and HAVING", 2)
    asked = standing({("q", 0, 1)}, f"PREFIX : <{E}> ASK {{ ?b :q 2 }}").why()
    assert asked.stopped == "?b :q 2" and [r.kind for r in asked.reasons] == ["constant"]
