"""A query over windows that is saved and restored now and then tells what the one that goes on tells."""

from __future__ import annotations

import random

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st
from loaded import load
from profiles import drawn
from rsp_lives import Life, pushed_one_by_one
from rsp_strategies import Setting, continuous, event_queries, kb_store

from oxiseq.engine.errors import SnapshotError
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.rsp.plan import compile_rsp
from oxiseq.engine.snapshot.saving import restore, save
from oxiseq.engine.terms.dictionary import TermDictionary

WITHOUT_SHRINKING = [Phase.explicit, Phase.reuse, Phase.generate]


@drawn(150, phases=WITHOUT_SHRINKING)
@given(continuous() | event_queries(), st.integers(0, 2**32))
@pytest.mark.slow
def test_a_run_goes_on_in_another_dictionary(setting: Setting, seed: int) -> None:
    assert pushed_one_by_one(setting, random.Random(seed)) == pushed_one_by_one(setting)


NAMED = """PREFIX : <http://e/>
SELECT ?x ?k ?z FROM NAMED <http://e/S> WIN [LND 0] AS :w
EVENT ON :w { ?x :p ?y GRAPH :g { ?k :q ?y } } AS A
EVENT ON :w { ?z :r ?u GRAPH :g { ?k :r ?u } } AS B
WHERE { MATCH { A SEQ B } GRAPH :g { ?k :p ?l } } REPORT ON CONTENT CHANGE"""


def test_blank_nodes_of_the_kb_are_known_again() -> None:
    """An event before the restart and one after it agree on a blank node of the KB, and tell it by its label."""
    kb = kb_store("".join(f"_:{n} <http://e/{p}> <http://e/{n}{p}> <http://e/g> .\n" for n in "ab" for p in "pqr"))
    said = [("p", "aq"), ("r", "ar"), ("p", "bq"), ("r", "br"), ("r", "ar")]
    events = [(t, f"<http://e/x{t}> <http://e/{p}> <http://e/{o}> .") for t, (p, o) in enumerate(said)]
    setting = Setting(NAMED, "rsepql", {"http://e/S": events}, "", None, None, None)
    found = pushed_one_by_one(setting, kb=kb)
    assert len(found) == 1 + 1 + 2 + 3
    for seed in range(6):
        assert pushed_one_by_one(setting, random.Random(seed), kb) == found


@drawn(25, phases=WITHOUT_SHRINKING)
@given(event_queries(), st.integers(0, 2**32))
def test_blank_nodes_of_the_kb_keep_their_labels(setting: Setting, seed: int) -> None:
    kb = kb_store(setting.kb)
    assert pushed_one_by_one(setting, random.Random(seed), kb) == pushed_one_by_one(setting, kb=kb)


def test_another_query_is_refused() -> None:
    text = "SELECT * FROM STREAM <http://e/S> [RANGE 10 SLIDE {}] WHERE {{ ?s ?p ?o }}"
    life = Life(Setting(text.format(1), "rspql", {}, "", None, None, None))
    data, terms = save(life.run, life.terms), TermDictionary()
    other = compile_rsp(load(text.format(2), "rspql"), terms)
    with pytest.raises(SnapshotError, match="another query"):
        restore(data, other, terms, StoreKb(life._kb()._store))
