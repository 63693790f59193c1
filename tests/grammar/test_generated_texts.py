"""Of every generator of texts, whatever it is for: the rendered query parses to the same algebra, and so does what it
is translated to. The generators of algebra have this property beside their languages' texts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from ceql_strategies import ceql_situations
from chain_strategies import chains
from hypothesis import given
from hypothesis import strategies as st
from profiles import drawn
from strategies import situations

from oxiseq.grammar import QueryError, parse, render
from oxiseq.grammar.languages import syntax_named

sys.path += [str(Path(__file__).parents[1] / name) for name in ("flow", "intervals", "rsp")]
from ep_strategies import chains as ep_chains
from ep_strategies import queries as ep_queries
from ep_strategies import rules
from lowering_strategies import cases
from rsp_strategies import continuous, event_queries, selections

TEXTS: dict[str, st.SearchStrategy[tuple[str, str]]] = {
    "situations": situations(clauses=True).map(lambda each: (each.text, "spaseq")),
    "trailing negations": situations(trailing=True).map(lambda each: (each.text, "spaseq")),
    "chains": chains().flatmap(lambda each: st.sampled_from(each.texts)).map(lambda text: (text, "spaseq")),
    "tuples": ceql_situations().map(lambda each: (each.text, "ceql")),
    "windows": continuous().map(lambda each: (each.text, each.language)),
    "events in windows": st.one_of(event_queries(), selections()).map(lambda each: (each.text, each.language)),
    "intervals": st.one_of(ep_queries, rules, ep_chains()).map(lambda query: (render(query), "epsparql")),
    "operators": cases().map(lambda case: (case.text, "rspql")),
}


@pytest.mark.parametrize("kind", TEXTS)
@drawn(60)
@given(data=st.data())
def test_a_rendered_query_and_its_translations_parse_to_themselves(kind: str, data: st.DataObject) -> None:
    text, language = data.draw(TEXTS[kind])
    query = parse(text, language)
    assert parse(render(query), language) == query
    for into, translate in syntax_named(language).translations.items():
        try:
            found = translate(query).query
        except QueryError:
            continue  # it has something that the other language has not
        assert parse(render(found), into) == found
