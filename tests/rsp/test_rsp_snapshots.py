"""A query over windows that is saved and restored now and then tells what the one that goes on tells."""

from __future__ import annotations

import random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from rsp_lives import Life, pushed_one_by_one
from rsp_strategies import Setting, continuous, event_queries

from oxiseq.engine.errors import SnapshotError
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.rsp.plan import compile_rsp
from oxiseq.engine.snapshot.saving import restore, save
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load

WITHOUT_SHRINKING = [Phase.explicit, Phase.reuse, Phase.generate]


@settings(phases=WITHOUT_SHRINKING, max_examples=150)
@given(continuous() | event_queries(), st.integers(0, 2**32))
def test_a_run_goes_on_in_another_dictionary(setting: Setting, seed: int) -> None:
    assert pushed_one_by_one(setting, random.Random(seed)) == pushed_one_by_one(setting)


def test_another_query_is_refused() -> None:
    text = "SELECT * FROM STREAM <http://e/S> [RANGE 10 SLIDE {}] WHERE {{ ?s ?p ?o }}"
    life = Life(Setting(text.format(1), "rspql", {}, "", None, None, None))
    data, terms = save(life.run, life.terms), TermDictionary()
    other = compile_rsp(load(text.format(2), "rspql"), terms)
    with pytest.raises(SnapshotError, match="another query"):
        restore(data, other, terms, StoreKb(life._kb()._store))
