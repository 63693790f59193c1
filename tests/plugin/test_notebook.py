"""What a notebook asks of a store: views of running queries that are kept up to date, and why a query matched."""

from __future__ import annotations

import gc
import sys
import time
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import oxiseq
from oxiseq.api.feed import Kept
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.terms.dictionary import TermDictionary

S = "http://example.org/payments"
QUERY = f"""
PREFIX : <http://example.org/>
SELECT ?who ?first ?second WITHIN 10 SECONDS
FROM STREAM S <{S}>
WHERE {{
  SEQ(A; B)
  DEFINE GPM A ON S {{ ?who :paid ?first }}
  DEFINE GPM B ON S {{ ?who :paid ?second FILTER(?second >= 10 * ?first) }}
}}
"""
KB = "<http://example.org/ann> <http://example.org/name> 'Ann <&>' <http://example.org/people> ."


def paid(amount: int, second: int) -> tuple[int, str]:
    return second * 1_000_000, f"<http://example.org/ann> <http://example.org/paid> {amount} ."


class Notebook:
    """Stands in for IPython: what its places show, one after the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shown: list[str] = []
        self.fails = False
        module = ModuleType("IPython.display")
        module.display = self.display  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
        monkeypatch.setitem(sys.modules, "IPython.display", module)

    def display(self, value: Any, *, display_id: bool) -> Notebook:
        assert display_id
        self.update(value)
        return self

    def update(self, value: Any) -> None:
        if self.fails:
            raise OSError("the kernel is gone")
        self.shown.append(value._repr_html_())


def wait(until: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not until():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_view_is_drawn_anew_while_events_come(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = Notebook(monkeypatch)
    store = oxiseq.Store()
    query = store.register(QUERY)
    view = query.live(every=0.01, matches=2)
    view._ipython_display_()
    assert "running" in notebook.shown[0] and "0 events, 0 late, 0 matches" in notebook.shown[0]
    store.stream(S).extend([paid(3, 1), paid(30, 2), paid(400, 3), paid(5000, 4)])
    store.advance(5_000_000)
    wait(lambda: "the newest 2 of 3 matches" in notebook.shown[-1])
    rows = [[cell.text for cell in row] for row in ElementTree.fromstring(notebook.shown[-1]).findall("table/tr")]
    ann = "http://example.org/ann"
    assert rows == [
        ["at", "who", "first", "second"],
        ["1970-01-01T00:00:04Z", ann, "400", "5000"],
        ["1970-01-01T00:00:03Z", ann, "30", "400"],
    ]
    for html in (notebook.shown[-1], view.html(), view._repr_html_()):
        ElementTree.fromstring(html)
    drawn = len(notebook.shown)
    time.sleep(0.05)
    assert len(notebook.shown) == drawn  # nothing has come
    assert [str(m["second"].value) for m in query.poll("0s")] == ["30", "400", "5000"]  # they are still there
    query.close()
    wait(lambda: "ended" in notebook.shown[-1])


def test_a_view_ends_when_it_is_told_to_and_does_not_hold_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = Notebook(monkeypatch)
    store = oxiseq.Store()
    query = store.register(QUERY)
    view, other, failing = query.live(every=0.01), query.live(every=0.01), query.live(every=0.01)
    failing.show(notebook)
    notebook.fails = True
    store.stream(S).push(*reversed(paid(1, 1)))
    time.sleep(0.05)  # its thread has ended without a word
    notebook.fails = False
    view._ipython_display_()
    view.stop()
    wait(lambda: "stopped" in notebook.shown[-1])
    drawn = len(notebook.shown)
    store.stream(S).push(*reversed(paid(10, 2)))
    assert "1 events" in repr(view) or "2 events" in repr(view)
    time.sleep(0.05)
    assert len(notebook.shown) == drawn
    other._ipython_display_()
    gone = weakref.ref(store)
    del store, query
    gc.collect()
    wait(lambda: gone() is None)
    assert other.html() == "<p>the query no longer exists</p>" and "gone" in repr(other)
    view.stop()


def test_why_of_a_running_query_is_why_of_the_events_that_are_kept() -> None:
    events = [paid(3, 1), paid(10, 2), paid(40, 3), paid(7, 4), paid(70, 12)]
    store = oxiseq.Store()
    query = store.register(QUERY)
    store.stream(S).retain(100)
    store.stream(S).extend(events[:2])
    for time_, graph in events[2:]:
        store.stream(S).push(graph, time_)
    told, same = query.why(), oxiseq.Query(QUERY).why({S: events})
    assert told == same
    assert (told.found, told.stages[-1].matches) == (1, 1)
    late = query.why(since=4_000_000)  # windows begin at 1 and 11, as those of the query at work
    assert late.found == 0 and [reason.kind for reason in late.reasons] == ["window"]
    assert query.why(until=3_000_000).gpms[0].saw == 2
    store.stream(S).retain(1)
    assert query.why().gpms[0].saw == 1
    assert len(query.why().matches) == 0
    store.stream(S).retain(0)
    with pytest.raises(oxiseq.OxiseqError, match=r"no events are kept for <http://example.org/payments>"):
        query.why()
    with pytest.raises(oxiseq.OxiseqError, match="0 or more"):
        store.stream(S).retain(-1)


def test_why_of_running_queries_of_other_languages() -> None:
    text = f"PREFIX : <http://example.org/> SELECT * FROM STREAM <{S}> [RANGE 10 SLIDE 1] WHERE {{ ?who :paid ?n }}"
    rows = text.replace(" [RANGE 10 SLIDE 1]", "")
    events = [paid(3, 1), paid(10, 2)]
    for language, query in (("rspql", text), ("epsparql", rows), ("ceql", "VOCAB <http://e/> SELECT * FROM S WHERE X")):
        store = oxiseq.Store()
        names = {"stream_names": {"S": S}} if language == "ceql" else {}
        running = store.register(query, language=language, **names)  # type: ignore[call-overload]
        store.stream(S).retain(10)
        store.stream(S).extend(events)
        assert running.why() == oxiseq.Query(query, language).why({S: events}, **names)


def test_facts_of_a_running_query_are_those_of_its_store() -> None:
    store = oxiseq.Store()
    store.update(f"INSERT DATA {{ GRAPH <http://example.org/people> {{ {KB.rsplit('<', 1)[0]} }} }}")
    named = QUERY.replace("?first }", "?first GRAPH :people { ?who :name ?name } }")
    query = store.register(named)
    store.stream(S).retain(10)
    store.stream(S).extend([paid(3, 1), paid(30, 2)])
    (match,) = query.why().matches
    assert [fact.object.value for fact in match.facts] == ["Ann <&>"]


@given(st.lists(st.integers(0, 5), max_size=8), st.integers(1, 7), st.integers(1, 7))
def test_the_newest_events_are_kept(sizes: list[int], most: int, fewer: int) -> None:
    terms = TermDictionary()
    kept, times = Kept(terms, most), []
    for size in sizes:
        new = [(len(times) + i, f"<http://e/{len(times) + i}> <http://e/p> 1 .") for i in range(size)]
        times += [t for t, _ in new]
        kept.add(encode_events(new, terms))
        terms.collect()
        expected = times[-most:]
        assert [(t, graph[0].subject.value) for t, graph in kept.events()] == [(t, f"http://e/{t}") for t in expected]
    kept.trim(fewer)
    terms.collect()
    assert [t for t, _ in kept.events()] == times[-min(most, fewer) :]
    assert len(kept) == len(times[-min(most, fewer) :])


def test_what_has_been_found_is_taken_at_once() -> None:
    store = oxiseq.Store()
    query = store.register(QUERY)
    assert len(query.matches()) == 0
    store.stream(S).extend([paid(3, 1), paid(30, 2), paid(400, 3), paid(5000, 4), paid(60000, 5)])
    first = next(query.poll("0s", idle=None))
    taken = query.matches(after=query.cursor)
    assert [first["second"].value, *(match["second"].value for match in taken)] == ["30", "400", "5000"]  # type: ignore[union-attr]
    assert taken.to_arrow().column("second").to_pylist() == [400, 5000] and taken.events == 5
    assert len(query.matches(after=3)) == 0  # 5 s is not complete yet
    store.advance(6_000_000)
    assert [(match.id, match.at_us) for match in query.matches(after=3)] == [(4, 5_000_000)]
    assert [match.id for match in query.matches(after=1, limit=2)] == [2, 3]


def test_other_languages_hand_out_matches_alike() -> None:
    store = oxiseq.Store()
    ceql = store.register("VOCAB <http://e/> SELECT * FROM T WHERE BUY AS x", language="ceql", stream_names={"T": S})
    windows = store.register(
        f"SELECT ?x FROM NAMED WINDOW <http://e/w> ON <{S}> [RANGE PT1S STEP PT1S] "
        "WHERE { WINDOW <http://e/w> { ?x a <http://e/BUY> } }",
        language="rspql",
        stream_operator="RSTREAM",
    )
    intervals = store.register(f"SELECT ?x FROM STREAM <{S}> {{ ?x a <http://e/BUY> }}", language="epsparql")
    for query in (ceql, windows, intervals):
        assert len(query.matches()) == 0
    store.stream(S).push("<http://e/1> a <http://e/BUY> .", 1_000_000)
    store.advance(9_000_000)
    kinds = [(taken.form, len(taken)) for query in (ceql, windows, intervals) if (taken := query.matches())]
    assert kinds == [("EVENTS", 1), ("SELECT", 1), ("SELECT", 1)]


def test_matches_are_shown_as_a_timeline_and_a_table() -> None:
    shown = oxiseq.run(QUERY, {S: [paid(3, 1), paid(30, 2)]})._repr_html_()
    root = ElementTree.fromstring(shown)
    assert root.find("{http://www.w3.org/2000/svg}svg") is not None
    assert len(root.findall("table/tr")) == 2
    assert "<svg" not in oxiseq.run(QUERY, {S: []})._repr_html_()
    query = oxiseq.Store().register(QUERY)
    assert ElementTree.fromstring(query._repr_html_()).find("{http://www.w3.org/2000/svg}svg") is not None


def test_an_error_shows_the_callers_lines_and_no_others() -> None:
    space: dict[str, Any] = {"__name__": "__main__", "oxiseq": oxiseq, "QUERY": QUERY, "S": S}
    cell = """def mine():
    return oxiseq.run(QUERY, {S: [(0, "nonsense")]})
mine()"""
    with pytest.raises(oxiseq.EventError) as caught:
        exec(compile(cell, "<cell>", "exec"), space)
    lines = caught.value._render_traceback_()
    frames = [line.strip() for line in lines if line.lstrip().startswith("File ")]
    assert frames[-2:] == ['File "<cell>", line 3, in <module>', 'File "<cell>", line 2, in mine']
    assert lines[-1].startswith("oxiseq.EventError: line 1: nonsense")
    assert not [line for line in lines if "engine/" in line or "functools" in line]
    with pytest.raises(oxiseq.OxiseqError) as caught_again:
        try:
            exec(compile("1 / 0", "<other>", "exec"), space)
        except ZeroDivisionError as error:
            raise oxiseq.OxiseqError("the source failed") from error
    text = "\n".join(caught_again.value._render_traceback_())
    assert text.index("ZeroDivisionError") < text.index("so:") < text.index("OxiseqError: the source failed")


def test_a_query_shows_no_internals() -> None:
    store = oxiseq.Store()
    query = store.register(QUERY)
    store.stream(S).extend([paid(3, 1), paid(30, 2), paid(4, 3)])
    names = [each.text for each in ElementTree.fromstring(query._repr_html_()).findall("table/tr/th")]
    assert names == ["reads", "events", "late", "matches", "memory"]
    (match,) = query.poll("0s")
    shown = ElementTree.fromstring(match._repr_html_())  # type: ignore[union-attr]
    assert [each.tag.rpartition("}")[2] for each in shown] == ["svg", "table"]
    (table,) = shown.findall("table")
    cells = {row[0].text: row[1].text for row in table.findall("tr")}
    assert cells["?who"] == "http://example.org/ann" and cells["A"] == "1970-01-01T00:00:01Z"
    assert table.findtext("caption") == "match 1"
