"""Single facts of windows, against streams that one can follow by eye."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import drawn
from pyoxigraph import NamedNode, RdfFormat, Triple, parse
from window_cases import Case, query_of, random_case

from oxiseq.engine.errors import LimitError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.windows.memory import Capacities
from oxiseq.engine.windows.plan import ConjunctiveQuery, compile_windows, not_native
from oxiseq.engine.windows.run import Answers, Report, Rows, WindowRun
from oxiseq.engine.windows.window import Window
from oxiseq.grammar.algebra import TriplePattern

EVERYTHING = Report.NEW | Report.ENDED | Report.ALL


class Stream:
    """A run of one query over events written in Turtle."""

    def __init__(self, body: str, window: Window, report: Report = EVERYTHING) -> None:
        self.terms = TermDictionary()
        self.run = WindowRun(compile_windows([query_of(body)], self.terms), self.terms, window, report)

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


def test_a_triple_in_both_windows_of_a_tumbling_one_neither_ends_nor_begins() -> None:
    stream = Stream("?x :p ?y", Window(10, 10))
    assert stream.push(9, ":a :p :b . :c :p :d .")[0] == ["a b", "c d"]
    assert stream.push(10, "") == ([], [], ["a b", "c d"])
    assert stream.push(11, ":a :p :b .") == ([], ["c d"], ["a b"])


def test_a_window_that_slides_by_two_reaches_from_the_next_even_clock() -> None:
    stream = Stream("?x :p ?y", Window(4, 2), Report.ALL)
    for time in range(1, 9):
        wanted = [f"n{t} n" for t in range(1, time + 1) if t > -(-time // 2) * 2 - 4]
        assert stream.push(time, f":n{time} :p :n .") == ([], [], wanted)


def test_a_counting_window_counts_instants() -> None:
    stream = Stream("?x :p ?y", Window(2, counted=True), Report.NEW | Report.ENDED)
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


def test_reports_may_differ_by_query_and_change() -> None:
    terms = TermDictionary()
    plan = compile_windows([query_of("?x :p ?y"), query_of("?x :p ?y . ?y :p ?z")], terms)
    assert len(plan.views) == 1
    run = WindowRun(plan, terms, Window(1, counted=True), [Report.NEW, Report.ENDED])
    both = encode_events([(0, graph(":a :p :b . :b :p :c ."))], terms)
    answers = run.push(both)
    assert [len(rows) for kind in (answers.new, answers.ended, answers.all) for rows in kind] == [2, 0, 0, 0, 0, 0]
    assert len(run.rows(1)) == 1
    assert [len(rows) for rows in run.push(encode_events([(1, [])], terms)).ended] == [0, 1]
    run.report(Report.ALL)
    assert [len(rows) for rows in run.push(encode_events([(2, graph(":a :p :a ."))], terms)).all] == [1, 1]


def test_conditions_that_need_more_than_the_row_are_left_to_the_caller() -> None:
    body = "?x :p ?y FILTER(?y > 1 && RAND() < 2) FILTER EXISTS { ?x :q ?z } FILTER(isIRI(?x))"
    (query,) = compile_windows([query_of(body)], TermDictionary()).queries
    assert len(query.left) == 2
    assert query.column(query.keys[1]) == 1


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
    plan = compile_windows([query_of("?x :p ?y . ?z :p ?w")], terms)
    run = WindowRun(plan, terms, Window(None), capacities=Capacities.smallest(), most_rows=500)
    events = [(i, graph(f":n{i} :p :n .")) for i in range(60)]
    assert len(run.push(encode_events(events[:15], terms)).new[0]) == 225
    for _ in range(2):
        with pytest.raises(LimitError, match="rows of one push"):
            run.push(encode_events(events[15:], terms))


def test_queries_that_are_not_native() -> None:
    assert not_native(ConjunctiveQuery(())) == "a pattern without triple patterns"
    p = NamedNode("http://e/p")
    many = tuple(TriplePattern(NamedNode(f"http://e/{i}"), p, p) for i in range(63))
    assert not_native(ConjunctiveQuery(many[:62])) is None
    assert not_native(ConjunctiveQuery(many)) == "more than 62 triple patterns"
    with pytest.raises(ValueError, match="62"):
        compile_windows([ConjunctiveQuery(many)], TermDictionary())


@drawn(20)
@given(st.integers(0, 2**62))
def test_the_order_of_rows_depends_on_the_history_alone(seed: int) -> None:
    dice = random.Random(seed)
    case = random_case(dice, most_events=16)
    starts = tuple(i for i in range(1, len(case.events)) if case.events[i][0] != case.events[i - 1][0])
    terms = TermDictionary()
    whole = encode_events(case.events, terms)
    found = [
        _rows(case, cuts, whole, sizes, terms)
        for cuts, sizes in (
            ((), None),
            (starts, Capacities.smallest()),
            (starts[::3], Capacities(entries=3, notes=2, out=7)),
        )
    ]
    assert found[0] == found[1] == found[2]


def _rows(
    case: Case, cuts: tuple[int, ...], whole: EventBatch, sizes: Capacities | None, terms: TermDictionary
) -> list[tuple[int, ...]]:
    run = WindowRun(compile_windows(case.queries, terms), terms, case.window, EVERYTHING, sizes)
    found: list[tuple[int, ...]] = []
    for low, high in zip((0, *cuts), (*cuts, len(whole)), strict=True):
        answers = run.push(whole.slice(low, high))
        for i, kind in enumerate((answers.new, answers.ended, answers.all)):
            for query, rows in enumerate(kind):
                times = answers.time[rows.at].tolist()
                found += [(i, query, time, *row) for time, row in zip(times, rows.values.tolist(), strict=True)]
    return sorted(found, key=lambda row: row[:3])
