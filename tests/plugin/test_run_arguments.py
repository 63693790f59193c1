"""`oxiseq.run` told wrong things, in every language: what it says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import oxiseq
from oxiseq.languages import Language

P = "PREFIX : <http://e/> "
PATTERN = "WHERE { ?x :p ?y }"
QUERIES = {
    "spaseq": P + "SELECT * FROM STREAM S <urn:s> WHERE { SEQ(A) DEFINE GPM A ON S { ?x :p ?y } }",
    "ceql": "VOCAB <urn:> SELECT * FROM s WHERE A",
    "epsparql": P + f"SELECT * FROM STREAM <urn:s> {PATTERN}",
    "rspql": P + f"SELECT * FROM STREAM <urn:s> [RANGE 10 SLIDE 1] {PATTERN}",
    "rsepql": P + "SELECT * FROM NAMED WINDOW :w ON <urn:s> [LND 0] EVENT ON :w { ?x :p ?y } AS A"
    " WHERE { MATCH { A } }",
}
EVENT = "<http://e/x> <http://e/p> 1 ; a <urn:A> ."
WRONG: dict[str, tuple[Any, dict[str, Any], str]] = {
    "no pair": ([(0,)], {}, "an event is .*graph.*, not "),
    "too long": ([(0, 1, EVENT, 4)], {}, "an event is .*graph.*, not "),
    "no tuple": ([0], {}, "an event is .*graph.*, not 0"),
    "no events": (5, {}, "a stream is a file or .*, not 5"),
    "lateness": ([(0, EVENT)], {"lateness": 5}, r"lateness=5: .* say \"5s\" \(or timedelta\(seconds=5\)\) or \"5us\""),
    "evaluation_times": ([(0, EVENT)], {"evaluation_times": 5}, "evaluation_times is a list of times, not 5"),
    "stream_operator": ([(0, EVENT)], {"stream_operator": 5}, "stream_operator=5 is not known"),
    "rules": ([(0, EVENT)], {"rules": [5]}, "rules: number 1: a query is a text, a path"),
    "kb": ([(0, EVENT)], {"kb": 5}, "a knowledge base is a file.*, not 5|asks no knowledge base"),
}


@pytest.mark.parametrize("language", QUERIES)
@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told(language: str, name: str) -> None:
    events, more, message = WRONG[name]
    run: Any = oxiseq.run
    assert len(run(QUERIES[language], {"urn:s": [(0, EVENT)]}, language=language)) == 1
    with pytest.raises(oxiseq.OxiseqError, match=message):
        run(QUERIES[language], {"urn:s": events}, language=language, **more)


@pytest.mark.parametrize("language", QUERIES)
def test_what_a_stream_raises_comes_through(language: str) -> None:
    def events() -> Iterator[tuple[int, str]]:
        yield 0, EVENT
        raise RuntimeError("the sensor is gone")

    run: Any = oxiseq.run
    with pytest.raises(RuntimeError, match="the sensor is gone"):
        run(QUERIES[language], {"urn:s": events()}, language=language)
    assert len(run(QUERIES[language], [(0, EVENT)], language=language)) == 1  # the only stream needs no name
    with pytest.raises(oxiseq.OxiseqError, match="events must be a file"):
        run(QUERIES[language], 7, language=language)


@pytest.mark.parametrize("language", QUERIES)
def test_an_only_stream_without_a_name_costs_no_second_plan(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    planned, plans = Language.planned, list[object]()

    def counted(self: Language[Any], *given: Any) -> Any:
        plans.append(given[0])
        return planned(self, *given)

    monkeypatch.setattr(Language, "planned", counted)
    run: Any = oxiseq.run
    assert len(run(QUERIES[language], [(0, EVENT)], language=language)) == 1
    assert len(plans) == 1


def test_which_rule_is_wrong_is_told() -> None:
    rule = P + "CONSTRUCT { ?x :q ?y } " + PATTERN
    rules = [rule, rule.replace(":q", "none:q", 1)]
    with pytest.raises(oxiseq.QueryError) as raised:
        oxiseq.run(QUERIES["epsparql"], {"urn:s": []}, language="epsparql", rules=rules)
    assert raised.value.__notes__ == ["in rule 2"]
