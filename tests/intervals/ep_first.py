"""Every operator of EP-SPARQL, over enough that all memory grows: what a first query may have to compile."""

from __future__ import annotations

from ep_runs import Engine
from test_ep_corpus import CASES, test_engine_answers_the_case
from test_ep_state import BOUNDED, P, price

from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.snapshot.saving import restore, save
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import QueryError, load

QUERIES = [
    *(f"{P} SELECT * {{ {where} }} {behind}" for where in BOUNDED.values() for behind in ("", "CONSUME RECENT")),
    f"{P} SELECT DISTINCT ?a (getSTARTTIME() AS ?t) {{ ?s :p ?a BIND(RAND() AS ?r) VALUES ?a {{ 1 2 UNDEF }} }}",
    f"{P} SELECT * {{ {{ ?s :p ?a }} SEQ {{ ?t ?r ?c OPTIONAL {{ ?c :p ?s }} }} FILTER(getDURATION() < 9) }}",
]
RULE = f"{P} CONSTRUCT {{ ?s :r ?c }} {{ ?s :p ?a . ?t :q|:r ?c FILTER(getDURATION() < 9) }}"


def answer_all() -> None:
    """Answer them, by the thousand events and one by one, with a rule that feeds itself and without."""
    for name in CASES:
        test_engine_answers_the_case(name)
    for text in QUERIES:
        try:
            query = load(text, "epsparql")
        except QueryError:  # it does not tell which triples an answer uses up
            continue
        for rules, size in (((), 1_000), ((), 1), ((load(RULE, "epsparql"),), 10)):
            engine = Engine(query, rules=() if query.consume is not None else rules)
            for low in range(0, 2_000 if size == 1_000 else 60, size):
                engine.run.push("urn:s", encode_events(map(price, range(low, low + size)), engine.terms))
                engine.run.advance()
            engine.run.collect()
            restore(save(engine.run, engine.terms), engine.plan, TermDictionary(), engine.kb)
