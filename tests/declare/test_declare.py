"""Process conformance: each template's query finds exactly what plain loops over finished cases find."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TypeAlias

import pytest
from declared import BROKEN, absence
from hypothesis import example, given
from hypothesis import strategies as st
from pyoxigraph import Literal

import oxiseq
from oxiseq.grammar import parse
from oxiseq.grammar.declare import EVENTS, REFUSED, TEMPLATES, USUAL_LOG, EventLog, declare_query

BY_NAME = {template.name: template for template in TEMPLATES}
TIMED = [name for name, template in BY_NAME.items() if template.timed]
SECOND = 1_000_000
Log: TypeAlias = tuple[list[list[str]], list[tuple[int, int, int]]]
"""Activities of each case, and (time, case, place in it) of each event."""
CASES = st.lists(st.lists(st.sampled_from("ABC"), max_size=7), min_size=1, max_size=3)
"""Some cases' activities; C is any other."""


def query(name: str, **more: object) -> str:
    template = BY_NAME[name]
    ends = {"end": "End"} if template.ends and "within" not in more else {}
    return declare_query(name, *"AB"[: template.activities], **ends, **more)


def event(case: object, activity: str, log: EventLog = USUAL_LOG) -> str:
    return f'[] <{log.case}> "{case}" ; <{log.activity}> {Literal(activity)} .'


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """Cases, each with its end, and the interleaved (time, case, place): times with gaps, each of one event."""
    cases = [[*case, "End"] for case in draw(CASES)]
    order = draw(st.permutations([n for n, case in enumerate(cases) for _ in case]))
    time, seen, events = 0, [0] * len(cases), []
    for case in order:
        time += draw(st.integers(1, 3))
        events.append((time, case, seen[case]))
        seen[case] += 1
    return cases, events


PARSED = lru_cache(oxiseq.Query)
"""The same few texts are asked for each drawn log."""


def found(text: str, log: Log) -> list[tuple[int, int, int]]:
    """Case and times of each match."""
    cases, events = log
    stream = [(time * SECOND, event(case, cases[case][place])) for time, case, place in events]
    matches = PARSED(text).run(streams={USUAL_LOG.stream: stream})
    return sorted((int(m["case"].value), m.start_us // SECOND, m.end_us // SECOND) for m in matches)


def test_each_template_has_a_plain_meaning() -> None:
    assert set(BROKEN) == set(BY_NAME)
    assert not set(REFUSED) & set(BY_NAME)


@pytest.mark.parametrize("name", BROKEN)
@given(log=logs())
@example(log=([["End"]], [(1, 0, 0)]))
def test_violations_are_those_of_a_plain_loop(name: str, log: Log) -> None:
    cases, events = log
    at = {(case, place): time for time, case, place in events}
    expected = sorted((n, at[n, i], at[n, j]) for n, case in enumerate(cases) for i, j in BROKEN[name](case))
    assert found(query(name), log) == expected


@given(log=logs(), times=st.integers(1, 4))
def test_absence_counts(log: Log, times: int) -> None:
    cases, events = log
    at = {(case, place): time for time, case, place in events}
    expected = sorted((n, at[n, i], at[n, j]) for n, case in enumerate(cases) for i, j in absence(case, times))
    assert found(query("absence", times=times), log) == expected


@pytest.mark.parametrize("name", TIMED)
@given(log=logs(), within=st.integers(1, 6))
def test_bounds_in_time(name: str, log: Log, within: int) -> None:
    """The bound itself is within it; an A is overdue also where its case, or the stream, has ended."""
    cases, events = log
    at = {(case, place): time for time, case, place in events}
    expected = []
    for n, case in enumerate(cases):
        if name == "response":
            bs = [at[n, j] for j, each in enumerate(case) if each == "B"]
            times = [at[n, i] for i, each in enumerate(case) if each == "A"]
            expected += [(n, time, time) for time in times if not any(time < b <= time + within for b in bs)]
        else:
            pairs = [(at[n, i], at[n, j]) for i, j in BROKEN[name](case)]
            expected += [(n, first, last) for first, last in pairs if last - first <= within]
    assert found(query(name, within=within * SECOND), log) == sorted(expected)


def test_next_means_next_in_the_case_whatever_happened() -> None:
    """An activity that no pattern names stands between A and B."""
    log = [["A", "x", "B", "End"]], [(n + 1, 0, n) for n in range(4)]
    assert not found(query("not-chain-succession"), log)
    assert found(query("chain-response"), log) == [(0, 1, 2)]


@pytest.mark.parametrize("name", REFUSED)
def test_what_two_queries_must_say_is_refused(name: str) -> None:
    with pytest.raises(oxiseq.OxiseqError, match="cannot be one query: it is broken in two ways"):
        declare_query(name, "A", "B")


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("respnse", "A", "B"), {}, "no template 'respnse'; did you mean response"),
        (("", "A"), {}, "no template ''"),
        (("x" * 100_000,), {}, "no template 'xxx"),
        (("response", "A", "B"), {}, "either --within or --end: while a case is open"),
        (("response", "A", "B"), {"end": "E", "within": 1}, "either --within or --end"),
        (("existence", "A"), {}, "existence wants --end"),
        (("existence", "A", "B"), {"end": "E"}, "takes one activity, A; 2 given"),
        (("precedence", "A"), {}, "takes two activities, A and B; 1 given"),
        (("precedence",), {}, "0 given"),
        (("precedence", "A", "A"), {}, "must differ"),
        (("precedence", "<urn:a>", "urn:a"), {}, "must differ"),
        (("response", "A", "B"), {"end": "B"}, "must differ"),
        (("precedence", "A", "B"), {"end": "E"}, "decided without the end"),
        (("precedence", "A", "B"), {"within": 5}, "no form with a time bound"),
        (("response", "A", "B"), {"within": 0}, "longer than nothing"),
        (("response", "A", "B"), {"within": -5}, "longer than nothing"),
        (("precedence", "A", "B"), {"times": 2}, "does not count"),
        (("absence", "A"), {"times": 0}, "1 to 1000, not 0"),
        (("absence", "A"), {"times": 1001}, "1 to 1000"),
        (("precedence", "", "B"), {}, "not an empty text"),
        (("precedence", " \t", "B"), {}, "not an empty text"),
        (("precedence", "<>", "B"), {}, "'' is not an IRI"),
        (("precedence", "<urn:a> <urn:b>", "B"), {}, "is not an IRI"),
        (("precedence", "http://e/a b", "B"), {}, "is not an IRI"),
        (("precedence", "\udc80", "B"), {}, "no text of Unicode"),
        (("precedence", "<urn:\udc80>", "B"), {}, "is not an IRI"),
        (("precedence", "A", "B"), {"log": EventLog(case="urn:c> ?x . ?y <urn:d")}, "is not an IRI"),
        (("precedence", "A", "B"), {"log": EventLog(stream="urn:s>\nWHERE {")}, "is not an IRI"),
        (("precedence", "A", "B"), {"log": EventLog(activity="")}, "is not an IRI"),
    ],
)
def test_what_cannot_be_a_query_is_refused(arguments: tuple[str, ...], options: dict, message: str) -> None:
    with pytest.raises(oxiseq.OxiseqError, match=message) as refused:
        declare_query(*arguments, **options)
    assert len(str(refused.value)) < 1000


@given(st.text(min_size=1).filter(lambda text: text.strip()), st.text(min_size=1).filter(lambda text: text.strip()))
@example('a" . ?x ?y "', "b\n} DEFINE GPM Z ON Log { ?s ?p ?o }")
@example("{it} {a}", "'; # \\")
def test_a_name_is_nothing_but_a_term(one: str, two: str) -> None:
    """Whatever stands in it, the query has the same shape, and finds just that activity."""
    try:
        text = declare_query("not-succession", one, two)
    except oxiseq.OxiseqError as error:
        assert "is not an IRI" in str(error) or one == two
        return
    assert [gpm.name for gpm in parse(text).gpms] == ["A", "B"]
    if not any(each.startswith(("<", "http:", "https:", "urn:")) for each in (one, two)):
        stream = [(1, event(7, one)), (2, event(7, two)), (3, event(7, "another"))]
        assert len(oxiseq.run(text, streams={USUAL_LOG.stream: stream})) >= 1


def test_iris_are_activities_too() -> None:
    log = EventLog("http://e/log", "http://e/case", "http://e/does")
    text = declare_query("Not Succession", "<tag:a>", "urn:b", log=log)
    stream = [(n, f"[] <{log.case}> 1 ; <{log.activity}> <{each}> .") for n, each in enumerate(("tag:a", "urn:b"))]
    assert len(oxiseq.run(text, streams={log.stream: stream})) == 1


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda each: each.name)
def test_the_query_is_valid_and_names_are_all_used(template: object) -> None:
    findings = oxiseq.Query(query(template.name)).check()
    assert not [each for each in findings if each.severity == "error"]


def test_no_two_names_have_one_variable() -> None:
    lower = sorted(name.lower() for name in EVENTS)
    assert all(one != two for one, two in pairwise(lower))
