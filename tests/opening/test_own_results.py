"""A query that reads its own result stream, also through other queries, is refused (semantics.md 2.6a)."""

from __future__ import annotations

from pathlib import Path

import pytest
from opened_stores import KINDS, opened

import oxiseq
from oxiseq.live import queries as live_queries

E = "http://e/"
OWN = "the result stream <http://e/s> is read by the query itself"


def hands_on(read: str, into: str, language: str = "spaseq") -> str:
    """A query of the language that writes what it reads of one stream into another."""
    head = f"PREFIX : <{E}> "
    if language == "spaseq":
        body = f"FROM STREAM S <{E}{read}> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?x :p ?y }} }}"
        return f"{head} CONSTRUCT {{ ?x :p ?y }} INTO STREAM <{E}{into}> {body}"
    if language == "epsparql":
        return f"{head} CONSTRUCT {{ ?x :p ?y }} INTO STREAM <{E}{into}> FROM STREAM <{E}{read}> WHERE {{ ?x :p ?y }}"
    window = "[RANGE PT10S STEP PT5S]"
    return (
        f"{head} REGISTER RSTREAM <{E}{into}> AS CONSTRUCT {{ ?x :p ?y }} FROM NAMED WINDOW :w ON <{E}{read}> "
        f"{window} WHERE {{ WINDOW :w {{ ?x :p ?y }} }}"
    )


LANGUAGES = ("spaseq", "epsparql", "rspql")


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_refused_when_it_is_registered(kind: str, tmp_path: Path) -> None:
    with opened(kind, tmp_path) as store:
        for language in LANGUAGES:
            with pytest.raises(oxiseq.OxiseqError, match=rf"{OWN} \(q1 -> <http://e/s> -> q1\)"):
                store.register(hands_on("s", "s", language), language, name="q1")
        store.register(hands_on("s", "t"), name="q2")
        store.register(hands_on("t", "u"), name="q3")
        told = r"\(q1 -> <http://e/s> -> q2 -> <http://e/t> -> q3 -> <http://e/u> -> q1\)"
        with pytest.raises(oxiseq.OxiseqError, match=f"{OWN} {told}"):
            store.register(hands_on("u", "s"), name="q1")
        store.register(hands_on("u", "v"), name="q1")  # nothing is left of those refused
        store.register(hands_on("s", "v"), name="q4")  # two ways to one stream are no cycle


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_is_refused_when_it_is_run(language: str) -> None:
    with pytest.raises(oxiseq.QueryError, match=rf"{OWN} \(query -> <http://e/s> -> query\)"):
        oxiseq.run(hands_on("s", "s", language), {f"{E}s": []}, language=language)


def test_rules_may_derive_from_each_other() -> None:
    rules = [
        f"PREFIX : <{E}> CONSTRUCT {{ ?x :q ?y }} WHERE {{ ?x :p ?y }}",
        f"PREFIX : <{E}> CONSTRUCT {{ ?x :q ?z }} WHERE {{ ?x :q ?y . ?y :q ?z }}",
    ]
    chain = [(n, f"<{E}{n}> <{E}p> <{E}{n + 1}> .") for n in range(3)]
    text = f"PREFIX : <{E}> SELECT * WHERE {{ ?x :q ?y }}"
    found = oxiseq.run(text, {f"{E}s": chain}, language="epsparql", rules=rules)
    assert len(found) == 6


@pytest.mark.parametrize("kind", KINDS)
def test_a_query_that_names_no_stream_does_not_read_its_own_results(kind: str, tmp_path: Path) -> None:
    text = f"PREFIX : <{E}> CONSTRUCT {{ ?x :grew ?y }} INTO STREAM <{E}t> WHERE {{ ?x :p ?y }}"
    with opened(kind, tmp_path) as store:
        store.stream(f"{E}s")
        store.stream(f"{E}t")
        assert store.register(text, "epsparql", name="q").reads == (f"{E}s",)


def test_an_old_folder_that_has_one_opens_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(live_queries, "refuse_own_results", lambda *given: None)
        with oxiseq.open(tmp_path / "store") as store:
            for name, read, into in (("q1", "s", "t"), ("q2", "t", "s"), ("q3", "t", "u")):
                store.register(hands_on(read, into), name=name)
    with oxiseq.open(tmp_path / "store") as store:
        state = {query.name: query.status["state"] for query in store.queries}
        assert state == {"q1": "running", "q2": "failed", "q3": "running"}
        told = store.find("q2").status["error"]
        assert "<http://e/s> is read by the query itself (q2 -> <http://e/s> -> q1 -> <http://e/t> -> q2)" in told
        store.stream(f"{E}s").extend([(f"<{E}a> <{E}p> 1 .", 1), ("", 2)])
        assert next(store.find("q1").poll("30s")).at_us == 1
        store.find("q2").resume()
        assert store.find("q2").status["state"] == "failed"
        store.find("q1").delete()
        store.find("q2").resume()
        assert store.find("q2").status["state"] == "running"
