"""The worked examples of the EP-SPARQL paper, by the reference and by the engine."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from ep_runs import Bag, reference_bag
from loaded import load
from pyoxigraph import RdfFormat, Triple
from pyoxigraph import parse as parse_rdf

import oxiseq
from oxiseq.grammar import parse, render

FOLDER = Path(__file__).parents[1] / "corpus" / "epsparql"
CASES = {path.stem: tomllib.loads(path.read_text()) for path in sorted(FOLDER.glob("*.toml"))}


def expected(case: dict[str, Any]) -> Bag:
    return Counter((r["start"], r["end"], tuple(sorted(r["bindings"].items()))) for r in case["rows"])


def triples(text: str) -> list[Triple]:
    return [q.triple for q in parse_rdf(text.encode(), format=RdfFormat.N_TRIPLES)]


@pytest.mark.parametrize("name", CASES)
def test_reference_answers_the_case(name: str) -> None:
    case = CASES[name]
    events = [(e["start"], e["time"], triples(e["graph"])) for e in case["events"]]
    rules = [load(rule, "epsparql") for rule in case.get("rules", ())]
    assert reference_bag(load(case["query"], "epsparql"), events, rules=rules) == expected(case)


@pytest.mark.parametrize("name", CASES)
def test_engine_answers_the_case(name: str) -> None:
    case = CASES[name]
    streams: dict[str, list[tuple[int, int, str]]] = {}
    for e in case["events"]:
        streams.setdefault(e["stream"], []).append((e["start"], e["time"], e["graph"]))
    found = oxiseq.run(case["query"], streams=streams, language="epsparql", rules=case.get("rules", ()))
    bag = Counter(
        (m.start_us, m.end_us, tuple(sorted((v, str(t)) for v, t in m.items() if t is not None))) for m in found
    )
    assert bag == expected(case)
    assert [m.end_us for m in found] == sorted(m.end_us for m in found)


@pytest.mark.parametrize("name", CASES)
def test_texts_come_back(name: str) -> None:
    for text in (CASES[name]["query"], *CASES[name].get("rules", ())):
        query = parse(text, "epsparql")
        assert parse(render(query), "epsparql") == query
