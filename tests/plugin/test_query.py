"""`oxiseq.Query`: what it is given as, what it is, and that every function that takes a query takes it."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import oxiseq
from oxiseq.grammar import LANGUAGES

P = "PREFIX : <http://e/> "
S = "http://e/S"
QUERIES = {
    "spaseq": P + f"SELECT ?x ?y WITHIN 1 HOUR FROM STREAM S <{S}> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?x :p ?y }} }}",
    "ceql": "VOCAB <http://e/> SELECT a FROM S WHERE A AS a WITHIN 1 HOUR",
    "epsparql": P + f"SELECT ?x ?y FROM STREAM <{S}> WHERE {{ ?x :p ?y }}",
    "rspql": P + f"SELECT ?x ?y FROM STREAM <{S}> [RANGE 10 SLIDE 1] WHERE {{ ?x :p ?y }}",
    "spectra": P + f"SELECT ?x ?y FROM STREAM <{S}> [RANGE 10 SECONDS SLIDE 1 SECONDS] WHERE {{ ?x :p ?y }}",
    "rsepql": P + f"SELECT ?x ?y FROM NAMED WINDOW :w ON <{S}> [LND 0] EVENT ON :w {{ ?x :p ?y }} AS A"
    " WHERE { MATCH { A } }",
}
EVENT = "<http://e/n> <http://e/p> 1 ; a <http://e/A> ."
SPASEQ = QUERIES["spaseq"]


def streams() -> dict[str, Any]:
    return {S: [(1_000_000, EVENT), (2_000_000, EVENT)]}


def as_text(path: Path) -> oxiseq.Query:
    return oxiseq.Query(path.read_text(encoding="utf-8"), path.suffix[1:])


def as_file(path: Path) -> oxiseq.Query:
    with path.open(encoding="utf-8") as file:
        return oxiseq.Query(file)


FORMS: dict[str, Callable[[Path], oxiseq.Query]] = {
    "text": as_text,
    "path": oxiseq.Query,
    "path as text": lambda path: oxiseq.Query(str(path)),
    "file": as_file,
    "query": lambda path: oxiseq.Query(oxiseq.Query(path)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_what_it_is_given_as_makes_no_difference(language: str, form: str, tmp_path: Path) -> None:
    path = tmp_path / f"q.{language}"
    path.write_text(QUERIES[language], encoding="utf-8")
    query = FORMS[form](path)
    assert (query.text, query.language) == (QUERIES[language], language)
    same = oxiseq.Query(QUERIES[language], language)
    assert query == same and hash(query) == hash(same) and query in {same}
    assert str(query) == QUERIES[language]
    assert repr(query).startswith(f"<Query {language}: ")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_function_that_takes_a_query_takes_text_path_and_query(language: str, tmp_path: Path) -> None:
    text, path = QUERIES[language], tmp_path / f"q.{language}"
    path.write_text(text, encoding="utf-8")
    query = oxiseq.Query(path)
    wanted = list(oxiseq.run(text, streams(), language=language))
    assert wanted == list(query.run(streams())) == list(oxiseq.run(path, streams()))
    assert wanted == list(oxiseq.run(query, streams()))
    assert len(wanted) > 0
    for given in (query, path):
        store = oxiseq.Store()
        registered = store.register(given)
        store.stream(S).extend(streams()[S])
        registered.close()
        assert list(registered.matches()) == wanted
        assert registered.query == query
    same = query.compare(path, streams())
    assert (same.gained, same.lost) == ((), ()) and same.kept == len(wanted)
    assert query.compare(text, streams()) == same
    assert query.why(streams()).found > 0
    assert query.variables == (("a",) if language == "ceql" else ("x", "y"))
    assert tuple(query.streams.values()) == (S,)


def test_rules_are_queries_too(tmp_path: Path) -> None:
    rule = P + "CONSTRUCT { ?x :q ?y } WHERE { ?x :p ?y }"
    (tmp_path / "r.epsparql").write_text(rule)
    text = P + "SELECT ?y WHERE { ?x :q ?y }"
    found = [
        list(oxiseq.run(text, streams(), language="epsparql", rules=[given]))
        for given in (rule, tmp_path / "r.epsparql", oxiseq.Query(rule, "epsparql"))
    ]
    assert found[0] and found[0] == found[1] == found[2]


def test_queries_of_two_languages_differ() -> None:
    text = QUERIES["rspql"]
    assert oxiseq.Query(text, "rspql") != oxiseq.Query(text, "spectra")
    assert oxiseq.Query(text) != text


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda query: pickle.loads(pickle.dumps(query))])
def test_copies_are_equal_and_work(again: Callable[[oxiseq.Query], oxiseq.Query]) -> None:
    query = oxiseq.Query(SPASEQ)
    assert query.check() == ()
    same = again(query)
    assert same == query and type(same) is oxiseq.Query
    assert list(same.run(streams())) == list(query.run(streams()))


def test_it_does_not_change() -> None:
    query = oxiseq.Query(SPASEQ)
    for name in ("text", "language", "name", "streams", "colour"):
        with pytest.raises(AttributeError):
            setattr(query, name, "ceql")
    with pytest.raises(AttributeError):
        del query.text
    with pytest.raises(TypeError):
        query.streams["T"] = "urn:t"  # type: ignore[index]
    assert query == oxiseq.Query(SPASEQ)


def test_what_is_wrong_is_told_by_check_and_raised_by_all_else() -> None:
    broken = oxiseq.Query("SELECT *\nFROM STREAM S <http://e/S> WHERE { SEQ( }")
    (found,) = broken.check()
    assert (found.severity, found.line) == ("error", 2) and found.message and found.column > 0
    senseless = oxiseq.Query(SPASEQ.replace("SELECT ?x ?y", "SELECT ?z"))
    (error,) = senseless.check()
    assert (error.severity, error.hint) == ("error", "it can be one of ?x, ?y")
    for query in (broken, senseless):
        for ask in (
            lambda q: q.streams,
            lambda q: q.variables,
            lambda q: q.explain(),
            lambda q: q.translate("ceql"),
            lambda q: q.run(streams()),
            lambda q: q.why(streams()),
            lambda q: q.compare(SPASEQ, streams()),
            lambda q: oxiseq.Store().register(q),
        ):
            with pytest.raises(oxiseq.QueryError, match="line"):
                ask(query)


def test_lints_are_findings() -> None:
    (lint,) = oxiseq.Query(SPASEQ.replace("?x :p ?y", "?x :p ?y FILTER(?y = ?y)")).check()
    assert lint.severity == "lint" and lint.line == 1


@pytest.mark.parametrize(
    ("given", "language", "message"),
    [
        (5, None, "a query is a text, a path, a file or an oxiseq.Query, not 5"),
        (None, None, "a query is a text"),
        (SPASEQ, "sql", "the language 'sql' is not known"),
        ("nowhere.ceql", None, "nowhere.ceql: No such file"),
        (Path("nowhere"), None, "nowhere: No such file"),
        (oxiseq.Query(SPASEQ), "ceql", "the query is in spaseq, not in ceql"),
    ],
)
def test_what_is_no_query(given: Any, language: str | None, message: str) -> None:
    with pytest.raises(oxiseq.OxiseqError, match=message):
        oxiseq.Query(given, language)
    with pytest.raises(oxiseq.OxiseqError, match=message):
        oxiseq.run(given, streams(), language=language)
    with pytest.raises(oxiseq.OxiseqError, match=message):
        oxiseq.Store().register(given, language)  # type: ignore[call-overload]


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "q.spaseq").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(oxiseq.OxiseqError, match=r"q\.spaseq: not UTF-8 text"):
        oxiseq.Query(tmp_path / "q.spaseq")


def test_other_endings_are_spaseq_or_what_is_said(tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text(QUERIES["ceql"])
    assert oxiseq.Query(tmp_path / "q.txt").language == "spaseq"
    assert oxiseq.Query(tmp_path / "q.txt", "ceql").check() == ()
    assert oxiseq.Query(io.StringIO(SPASEQ)) == oxiseq.Query(SPASEQ)
    (tmp_path / "q.ceql").write_text(QUERIES["rspql"])
    assert oxiseq.Query(tmp_path / "q.ceql", "rspql").language == "rspql"


def test_a_translation_is_a_query() -> None:
    there = oxiseq.Query(QUERIES["ceql"], "ceql").translate("spaseq")
    assert there.language == "spaseq" and there.check() == ()
    assert len(there.run(streams())) == len(oxiseq.run(QUERIES["ceql"], streams(), language="ceql"))
    with pytest.raises(oxiseq.QueryError):
        oxiseq.Query(SPASEQ).translate("ceql")


def test_an_explanation_in_each_form() -> None:
    told = oxiseq.Query(SPASEQ).explain()
    assert "SEQ" in str(told) or "A" in str(told)
    assert told.svg().startswith("<svg") and "<svg" in told._repr_html_()
    assert told.dot().startswith("digraph") and isinstance(told.json(), dict)


def test_a_query_over_the_store_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "all.rq").write_text("SELECT * WHERE { ?s ?p ?o }")
    standing = oxiseq.Store().register(tmp_path / "all.rq", language="sparql")
    assert standing.variables == ("s", "p", "o")


def test_an_epsparql_query_that_names_no_stream_has_columns_and_no_streams() -> None:
    query = oxiseq.Query("PREFIX : <urn:> SELECT ?x ?b { { ?x :p ?a } SEQ { ?x :p ?b } }", "epsparql")
    assert (dict(query.streams), query.variables) == ({}, ("x", "b"))


@pytest.mark.parametrize("file", [io.BytesIO(b"\xff"), io.TextIOWrapper(io.BytesIO(b"\xff"), encoding="utf-8")])
def test_an_open_file_that_is_no_text_is_refused(file: Any) -> None:
    with pytest.raises(oxiseq.OxiseqError, match="not UTF-8"):
        oxiseq.Query(file)
