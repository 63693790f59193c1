"""Whatever stands in whatever place of the public functions: what comes is an answer, an OxiseqError that says what is
wrong, or what Python itself says of an index, a file or a missing argument. Never an error from inside."""

from __future__ import annotations

import inspect
import pickle
import warnings
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import oxiseq
from oxiseq.grammar.arguments import checked, public

TEXT = """PREFIX : <http://example.org/>
SELECT ?who FROM STREAM S <http://example.org/s> WHERE { SEQ(A) DEFINE GPM A ON S { ?who :paid ?x } }"""
GRAPH = "<http://example.org/ann> <http://example.org/paid> 1 ."
STREAMS = {"S": [(1, GRAPH), (2, GRAPH)]}
WRONG: tuple[Any, ...] = (
    None,
    3,
    -1,
    object(),
    [],
    [3],
    {},
    {3: 3},
    float("nan"),
    float("inf"),
    10**40,
    -(10**40),
    "",
    b"x",
    True,
    "\0",
    (1, 2, 3),
    lambda: 1,
    {"S": 3},
    {"S": [3]},
    {"S": [(1,)]},
    {"S": [(None, None)]},
    {"S": None},
    [None],
    [(1, 2)],
    range(3),
    datetime(1, 1, 1),
    "no such word",
    "half a \ud800",
    f'{GRAPH} <urn:a> <urn:b> "\ud800" .',
    "http://example.org/x",
)
ALLOWED: dict[str, tuple[type[Exception], ...]] = {
    "path": (OSError, UnicodeEncodeError),
    "output": (OSError, ValueError),
}
"""What Python says of files."""


WITH_METHODS = ("Store", "ContinuousQuery", "StandingQuery", "Stream", "Matches", "Match", "Why", "Query")


@cache
def things() -> dict[str, Any]:
    """One of each class that has methods."""
    store = oxiseq.Store()
    query = store.register(TEXT)
    standing = store.register("SELECT ?s { ?s ?p ?o }", language="sparql")
    stream = store.stream("http://example.org/s")
    stream.push(GRAPH, 1)
    stream.push(GRAPH, 2)
    matches = oxiseq.run(TEXT, STREAMS)
    query.close()  # so that nobody waits for it
    asked = oxiseq.Query(TEXT)
    found = (store, query, standing, stream, matches, matches[0], asked.why(STREAMS), asked)
    return dict(zip(WITH_METHODS, found, strict=True))


GOOD: dict[str, dict[str, Any]] = {
    "run": {"query": TEXT, "streams": STREAMS},
    "open": {},
    "Query": {"query": TEXT},
    "Store": {},
    "Query.run": {"streams": STREAMS},
    "Query.why": {"streams": STREAMS},
    "Query.compare": {"other": TEXT, "streams": STREAMS},
    "Query.translate": {"language": "ceql"},
    "Store.register": {"query": TEXT},
    "Store.stream": {"iri": "http://example.org/s"},
    "Store.advance": {"time": 3},
    "Store.find": {"name": "paid"},
    "Stream.push": {"graph": GRAPH, "time": 3},
    "Stream.extend": {"events": []},
    "Stream.advance": {"time": 3},
    "Matches.write": {"format": "csv"},
    "ContinuousQuery.wait": {"timeout": "0s"},
}
UNHEARD = {"Stream.push_batch", "Store.over"}
"""They take what only other parts of oxiseq make, or keep what they are given and call it later."""


def callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function, class that is called, and method."""
    for name in oxiseq.__all__:
        found = getattr(oxiseq, name)
        if inspect.isfunction(found) or name in ("Store", "Query"):
            yield name, found
        if inspect.isclass(found) and name in WITH_METHODS:
            for member, of in vars(found).items():
                if inspect.isfunction(of) and not member.startswith("_") and f"{name}.{member}" not in UNHEARD:
                    yield f"{name}.{member}", of


def places() -> list[tuple[str, str]]:
    """Every parameter of them."""
    return [
        (name, parameter.name)
        for name, of in callables()
        for parameter in list(inspect.signature(of).parameters.values())["." in name :]
        if parameter.kind is not parameter.VAR_KEYWORD
        and (name, parameter.name) != ("open", "location")  # it makes folders
    ]


@pytest.mark.parametrize(("name", "parameter"), places())
def test_a_wrong_argument_is_told_at_the_door(
    name: str, parameter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a text may be a file's name
    of, _, method = name.partition(".")
    call = getattr(things()[of], method) if method else getattr(oxiseq, of)
    for wrong in WRONG:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                call(**{**GOOD.get(name, {}), parameter: wrong})
            except oxiseq.OxiseqError as error:
                assert str(error)
            except ALLOWED.get(parameter, ()):
                pass
            except TypeError as error:
                assert "missing" in str(error), (wrong, error)  # of the signature: another argument is not given


def test_every_public_name_is_of_oxiseq() -> None:
    for name in oxiseq.__all__:
        found = getattr(oxiseq, name)
        assert found.__module__ == "oxiseq", name
        assert getattr(oxiseq, found.__name__) is found
    assert pickle.loads(pickle.dumps(oxiseq.run)) is oxiseq.run


def test_all_errors_are_in_one_tree() -> None:
    errors = [
        each
        for name in oxiseq.__all__
        if inspect.isclass(each := getattr(oxiseq, name))
        and issubclass(each, Exception)
        and not issubclass(each, Warning)
    ]
    assert len(errors) >= 7
    assert all(issubclass(each, oxiseq.OxiseqError) for each in errors)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"query": 3}, TypeError, "a query is a text, a path, a file or an oxiseq.Query, not 3"),
        ({"on_error": "go on"}, ValueError, "on_error='go on' is not known; known: stop, skip"),
        ({"streams": {3: []}}, TypeError, "streams are named by texts, not 3"),
        ({"language": True}, TypeError, "run(): language is str | None, not bool: True"),
    ],
)
def test_what_is_said_of_it(given: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error) as raised:
        oxiseq.run(**{"query": TEXT, "streams": {}} | given)
    assert isinstance(raised.value, oxiseq.OxiseqError)
    assert str(raised.value) == said


def test_functions_that_are_checked_stay_themselves() -> None:
    def count(number: int, *more: int, each: float | None = None) -> int:
        """Counts."""
        return number

    asked = checked(count)
    assert inspect.signature(asked) == inspect.signature(count)
    assert (asked.__doc__, asked(3, each=2)) == ("Counts.", 3)
    with pytest.raises(oxiseq.ArgumentTypeError):
        asked(3, each="x")
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        asked()

    @public
    class Thing:
        def _inner(self, number: int) -> int:
            return number

        def outer(self, number: int) -> int:
            """Adds."""
            return self._inner("not looked at") if number else 0  # type: ignore[arg-type]

    assert Thing().outer(1) == "not looked at"
    with pytest.raises(oxiseq.ArgumentTypeError, match="outer"):
        Thing().outer("1")  # type: ignore[arg-type]
