"""Single facts of windows, against streams that one can follow by eye."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import drawn
from pyoxigraph import RdfFormat, Triple, parse
from window_cases import Case, query_of, random_case
from window_invariants import check
from window_run import Answers, Rows, WindowRun

from oxiseq.engine.errors import LimitError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.window import Window


class Stream:
    """A run of one query over events written in Turtle."""

    def __init__(self, body: str, window: Window) -> None:
        self.terms = TermDictionary()
        self.run = WindowRun([query_of(body)], self.terms, window)

    def batch(self, *events: tuple[int, str]) -> EventBatch:
        """Events as a batch."""
        return encode_events([(time, graph(text)) for time, text in events], self.terms)

    def push(self, time: int, text: str) -> tuple[list[str], list[str], list[str]]:
        """One event: new, ended and all rows, each as the last parts of its terms, in order."""
        return self.shown(self.run.push(self.batch((time, text))))

    def shown(self, answers: Answers) -> tuple[list[str], list[str], list[str]]:
        """The rows of an answer."""
        return self._words(answers.new[0]), self._words(answers.ended[0]), self._words(answers.all[0])

    def _words(self, rows: Rows) -> list[str]:
        texts = [[self.terms.term(i).value.split("/")[-1] for i in row] for row in rows.values.tolist()]  # type: ignore[union-attr]
        return sorted(" ".join(row) for row in texts)


def graph(text: str) -> list[Triple]:
    """A graph in Turtle."""
    return [quad.triple for quad in parse(f"@prefix : <http://e/> . {text}", RdfFormat.TURTLE)]


def test_a_match_may_come_together_from_several_events() -> None:
    stream = Stream("?x :p ?y . ?y :q ?z", Window(10))
    assert stream.push(1, ":a :p :b .") == ([], [], [])
    assert stream.push(2, ":b :q :c .") == (["a b c"], [], ["a b c"])


def test_what_is_only_refreshed_is_not_new_and_lives_longer() -> None:
    stream = Stream("?x :p ?y", Window(10))
    assert stream.push(0, ":a :p :b .") == (["a b"], [], ["a b"])
    assert stream.push(6, ":a :p :b .") == ([], [], ["a b"])
    assert stream.push(12, "") == ([], [], ["a b"])
    assert stream.push(16, "") == ([], ["a b"], [])


@pytest.mark.parametrize(("body", "new", "ended"), [(":a :p :b", [2, 4], [1, 3, 5]), (":a :p :b . ?x :q ?y", [], [0])])
def test_a_triple_without_variables_comes_and_goes_within_a_batch(body: str, new: list[int], ended: list[int]) -> None:
    stream = Stream(body, Window(1, counted=True))
    events = [(time, "" if time % 2 else ":a :p :b . :c :q :d .") for time in range(3)]
    answers = stream.run.push(stream.batch(*events))
    check(stream.run)
    assert [rows.at.tolist() for rows in (answers.new[0], answers.ended[0])] == [[0, 2], [1]]
    answers = stream.run.push(stream.batch(*((time, ":a :p :b ." if time % 2 else "") for time in range(3, 9))))
    check(stream.run)
    assert [rows.at.tolist() for rows in (answers.new[0], answers.ended[0])] == [new, ended]


def test_a_triple_in_both_windows_of_a_tumbling_one_neither_ends_nor_begins() -> None:
    stream = Stream("?x :p ?y", Window(10, 10))
    assert stream.push(9, ":a :p :b . :c :p :d .")[0] == ["a b", "c d"]
    assert stream.push(10, "") == ([], [], ["a b", "c d"])
    assert stream.push(11, ":a :p :b .") == ([], ["c d"], ["a b"])


def test_a_window_that_slides_by_two_reaches_from_the_next_even_clock() -> None:
    stream = Stream("?x :p ?y", Window(4, 2))
    for time in range(1, 9):
        wanted = [f"n{t} n" for t in range(1, time + 1) if t > -(-time // 2) * 2 - 4]
        assert stream.push(time, f":n{time} :p :n .")[2] == wanted


def test_a_counting_window_counts_instants() -> None:
    stream = Stream("?x :p ?y", Window(2, counted=True))
    answers = stream.run.push(stream.batch((5, ":a :p :b ."), (5, ":c :p :d ."), (90, ""), (91, ":e :p :f .")))
    assert answers.time.tolist() == [5, 90, 91]
    assert answers.new[0].at.tolist() == [0, 0, 2]
    assert answers.ended[0].at.tolist() == [2, 2]


def test_time_does_not_fall() -> None:
    stream = Stream("?x :p ?y", Window(10))
    stream.push(5, "")
    with pytest.raises(ValueError, match="order of time"):
        stream.push(4, "")
    with pytest.raises(ValueError, match="order of time"):
        stream.run.push(stream.batch((7, ""), (6, "")))
    assert stream.push(5, ":a :p :b .")[0] == ["a b"]  # of the same time, an instant of its own
    for wrong in ({"range": 0}, {"range": 1, "slide": 0}):
        with pytest.raises(ValueError, match="at least 1"):
            Window(**wrong)


def test_only_rows_that_come_or_go_may_be_wanted() -> None:
    terms = TermDictionary()
    queries = [query_of("?x :p ?y"), query_of("?x :p ?y . ?y :p ?z"), query_of("?x :p ?y . ?z :p ?x")]
    run = WindowRun(queries, terms, Window(1, counted=True), ["COME", "GO", "COME"])
    assert len(run.leaves.outs) == 1
    answers = run.push(encode_events([(0, graph(":a :p :b . :b :p :c ."))], terms))
    assert [len(rows) for kind in (answers.new, answers.ended) for rows in kind] == [2, 0, 1, 0, 0, 0]
    answers = run.push(encode_events([(1, [])], terms))
    assert [len(rows) for kind in (answers.new, answers.ended) for rows in kind] == [0, 0, 0, 2, 1, 0]


def test_a_condition_that_never_holds_leaves_no_rows() -> None:
    stream = Stream("?x :p ?y FILTER(1 > 2)", Window(10))
    assert stream.push(0, ":a :p :b .") == ([], [], [])
    assert len(stream.run.rows()) == 0


def test_a_condition_on_what_no_pattern_binds_is_an_error() -> None:
    assert Stream("?x :p ?y FILTER(?z > 2 || ?y < 0)", Window(10)).push(0, ":a :p 1 .")[0] == []
    assert Stream("?x :p ?y FILTER(!BOUND(?z))", Window(10)).push(0, ":a :p 1 .")[0] == ["a 1"]


def test_what_doubles_cannot_tell_is_told() -> None:
    big = "9007199254740993"
    stream = Stream(f"?x :p ?y FILTER(?y > 9007199254740992) FILTER(?y != {big}.5)", Window(10))
    assert stream.push(0, f":a :p 9007199254740992, {big}, {big}.5 .")[0] == [f"a {big}"]
    joint = Stream("?x :p ?y . ?x :q ?z FILTER(?y > ?z)", Window(10))
    assert joint.push(0, f":a :p {big} ; :q 9007199254740992 . :b :p {big} ; :q {big} .")[0] == [
        f"a {big} 9007199254740992"
    ]


def test_too_many_rows_are_an_error_and_not_cut() -> None:
    terms = TermDictionary()
    run = WindowRun([query_of("?x :p ?y . ?z :p ?w")], terms, Window(None))
    for node in run.flow.nodes:
        node.out.most = 500
    events = [(i, graph(f":n{i} :p :n .")) for i in range(60)]
    assert len(run.push(encode_events(events[:15], terms)).new[0]) == 225
    for some in (events[15:59], events[59:]):
        with pytest.raises(LimitError, match="rows that an operator makes"):
            run.push(encode_events(some, terms))


def test_a_condition_on_several_variables_is_checked_while_patterns_are_joined() -> None:
    terms = TermDictionary()
    run = WindowRun([query_of("?x :p ?y . ?z :p ?w FILTER(?y + ?w = 0) FILTER(?x != ?z)")], terms, Window(None))
    for node in run.flow.nodes:
        node.out.most = 100
    events = [(i, graph(f":n{i} :p {i - 20} .")) for i in range(41)]
    assert len(run.push(encode_events(events, terms)).new[0]) == 40


def test_too_many_changes_of_one_pattern_are_an_error_that_stays() -> None:
    terms = TermDictionary()
    run = WindowRun([query_of("?x :p ?y")], terms, Window(None))
    run.leaves.outs[0].most = 32
    events = [(i, graph(f":n{i} :p :n .")) for i in range(60)]
    run.push(encode_events(events[:20], terms))
    for some in (events[20:], events[59:]):
        with pytest.raises(LimitError, match="rows that an operator makes"):
            run.push(encode_events(some, terms))


@drawn(20)
@given(st.integers(0, 2**62))
def test_rows_depend_on_the_history_alone(seed: int) -> None:
    dice = random.Random(seed)
    case = random_case(dice, most_events=16)
    starts = tuple(i for i in range(1, len(case.events)) if case.events[i][0] != case.events[i - 1][0])
    terms = TermDictionary()
    whole = encode_events(case.events, terms)
    found = [_rows(case, cuts, whole, tiny, terms) for cuts, tiny in (((), False), (starts, True), (starts[::3], True))]
    assert found[0] == found[1] == found[2]


def _rows(
    case: Case, cuts: tuple[int, ...], whole: EventBatch, tiny: bool, terms: TermDictionary
) -> list[tuple[int, ...]]:
    run = WindowRun(case.queries, terms, case.window, tiny=tiny)
    found: list[tuple[int, ...]] = []
    for low, high in zip((0, *cuts), (*cuts, len(whole)), strict=True):
        answers = run.push(whole.slice(low, high))
        for i, kind in enumerate((answers.new, answers.ended, answers.all)):
            for query, rows in enumerate(kind):
                times = answers.time[rows.at].tolist()
                found += [(i, query, time, *row) for time, row in zip(times, rows.values.tolist(), strict=True)]
    return sorted(found)
