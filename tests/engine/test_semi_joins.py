"""A KB pattern that binds nothing new is a check of rows: no match is joined with its answer."""

from __future__ import annotations

import pytest
from loaded import load
from pyoxigraph import RdfFormat
from pyoxigraph import Store as RdfStore

import oxiseq
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.terms.dictionary import TermDictionary

E = "http://e/"
KB = "".join(
    f"<{E}{s}> <{E}{p}> <{E}{o}> <{E}kb> .\n"
    for s, p, o in [
        ("k1", "is", "T"),
        ("k3", "is", "T"),
        ("k1", "name", "n1"),
        ("k1", "name", "n2"),
        ("k2", "name", "n3"),
        ("all", "has", "x"),
    ]
)
EVENTS = [(i, f"_:e <{E}k> <{E}k{i}> ." + f" _:e <{E}c> <{E}k{i}> ." * (i == 1)) for i in (1, 2, 3)]


def query(pattern: str, clauses: str = "") -> str:
    return f"""PREFIX : <{E}>
    SELECT ?k FROM STREAM S <{E}s>
    WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?x :k ?k . {pattern} }} }} {clauses}"""


@pytest.mark.parametrize(
    ("pattern", "enriched", "found"),
    [
        ("GRAPH :kb { ?k :is :T }", False, [1, 3]),
        ("GRAPH :kb { ?k :is :T . ?k :name :n1 }", False, [1]),
        ("?x :c ?c . GRAPH :kb { ?k :is :T . ?c :name :n2 }", False, [1]),
        ("GRAPH :kb { ?k :name ?name }", True, [1, 1, 2]),  # two names are two mappings, shown or not
        ("OPTIONAL { ?x :c ?c } GRAPH :kb { ?c :is :T }", True, [1, 2, 2, 3, 3]),  # the KB binds what is not bound
        ("GRAPH :kb { :all :has :x OPTIONAL { ?k :is :U } }", True, [1, 2, 3]),
        ("GRAPH :kb { :all :has :x }", False, [1, 2, 3]),
        ("GRAPH :kb { :all :has :y }", False, []),
    ],
)
def test_which_patterns_only_check(pattern: str, enriched: bool, found: list[int]) -> None:
    plan = compile_query(load(query(pattern)), TermDictionary())
    assert plan.runner.gpms["A"].late
    assert plan.runner.gpms["A"].enriched == enriched
    assert [match.at_us for match in oxiseq.run(query(pattern), {"S": EVENTS}, KB)] == found


def test_limit_counts_what_is_told() -> None:
    once = oxiseq.run(query("GRAPH :kb { ?k :name ?name }", "LIMIT 1"), {"S": EVENTS}, KB)
    assert [match.at_us for match in once] == [1, 2]
    checked = oxiseq.run(query("GRAPH :kb { ?k :is :T }", "LIMIT 1"), {"S": EVENTS}, KB)
    assert [match.at_us for match in checked] == [1, 3]


def test_one_plan_over_two_stores_asks_each_of_them() -> None:
    terms = TermDictionary()
    plan = compile_query(load(query("GRAPH :kb { ?k :is :T }")), terms)
    contents = [KB, KB.replace("k3", "k2"), ""]
    stores = [RdfStore() for _ in contents]
    for store, content in zip(stores, contents, strict=True):
        store.load(content.encode(), RdfFormat.N_QUADS)
    kbs = [StoreKb(store) for store in stores]
    runs = [QueryRun(plan, terms, kb) for kb in kbs]
    assert len({kb.version for kb in kbs}) == 1

    def found(run: QueryRun, event: tuple[int, str]) -> list[int]:
        run.push(f"{E}s", encode_events([event], terms))
        run.push(f"{E}s", encode_events([(event[0] + 1, f"<{E}a> <{E}b> <{E}c> .")], terms))
        return [int(t) for batch in run.advance() for t in batch.time]

    by_turns = [[found(run, (10 * t, text)) for t, text in EVENTS] for run in runs]
    assert by_turns == [[[10], [], [30]], [[10], [20], []], [[], [], []]]
    stores[2].load(KB.encode(), RdfFormat.N_QUADS)
    kbs[2].touch()
    kbs[1].touch()
    assert [found(run, (40, EVENTS[2][1])) for run in runs] == [[40], [], [40]]
