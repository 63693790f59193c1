"""An option is declared once: all doors have the same ones per language, with the same defaults and refusals."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from profiles import drawn
from test_query import QUERIES, S, streams

import oxiseq
from oxiseq.cli import main
from oxiseq.grammar import LANGUAGES
from oxiseq.grammar.languages import ours
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.api import LiveRoutes
from oxiseq.live.api.openapi import SCHEMAS
from oxiseq.options import (
    HISTORY,
    OPTIONS,
    QUERY,
    RUN,
    SOURCES,
    STATE,
    Options,
    as_data,
    options_for,
    said,
    said_as_data,
)
from oxiseq.options.declared import AnswerKeywords, QueryKeywords, RunKeywords, WhyKeywords
from oxiseq.options.reference import reference
from oxiseq.server import ServerSettings, create_app
from oxiseq.sparql import SparqlEndpoint
from oxiseq.testing.run import run_file

VALUES: dict[str, Any] = {
    "origin": "2024-05-01T00:00:00Z",
    "lateness": "5s",
    "stream_names": {"S": S},
    "stream_operator": "RSTREAM",
    "evaluation_times": ["1970-01-01T00:00:01Z"],
    "consumption": "RECENT",
    "rules": ["PREFIX : <http://e/> CONSTRUCT { ?x :q ?y } WHERE { ?x :p ?y }"],
    "on_error": "skip",
    "time_predicate": "http://e/time",
    "type_column": "kind",
    "time_column": "when",
    "time_unit": "ms",
    "late": "error",
    "end": "open",
    "max_state_records": 5,
    "max_state_bytes": 10_000_000,
    "on_state_limit": "drop",
    "since": "1970-01-01T00:00:01Z",
    "until": "1970-01-01T00:00:02Z",
    "limit": 1,
}
"""A value of each option, as data, that is not the default."""
WRONG: dict[str, Any] = {
    "origin": "noon",
    "lateness": "long",
    "stream_names": "S",
    "stream_operator": "ALL",
    "evaluation_times": ["noon"],
    "consumption": "SOME",
    "rules": 5,
    "max_state_records": -1,
    "max_state_bytes": "much",
    "on_state_limit": "explode",
}


def names(*doors: Any, language: str | None = None) -> set[str]:
    return {option.name for option in options_for(language, doors)}


def test_each_option_has_a_value_here() -> None:
    assert set(VALUES) == set(OPTIONS) and set(WRONG) == names(QUERY, STATE)


def test_what_is_written_is_read_again() -> None:
    for language in LANGUAGES:
        mine = {name: value for name, value in VALUES.items() if OPTIONS[name].takes(language)}
        options = said_as_data(language, mine, tuple(each.door for each in OPTIONS.values()))
        assert json.loads(json.dumps(as_data(options))) == mine
    assert as_data(Options()) == {}


@drawn(100)
@given(st.integers(0, 10**18), st.integers(-(10**15), 10**15), st.lists(st.integers(-(10**15), 10**15), max_size=3))
def test_times_and_durations_survive_being_written(lateness: int, origin: int, at: list[int]) -> None:
    lateness %= 3_652_425 * 86_400_000_000
    options = Options(lateness=lateness, origin=origin, evaluation_times=tuple(at))
    assert said_as_data("rspql", as_data(options)) == options


# --- the doors list the same ------------------------------------------------------------------------------------------


def test_python_has_them_as_keywords() -> None:
    assert set(QueryKeywords.__annotations__) == names(QUERY)
    assert set(RunKeywords.__annotations__) == names(QUERY, SOURCES)
    assert set(AnswerKeywords.__annotations__) == names(QUERY, SOURCES, RUN)
    assert set(WhyKeywords.__annotations__) == names(QUERY, SOURCES, HISTORY)
    own = {"self", "query", "streams", "kb", "language", "other", "name", "keep", "replace"}
    for function, doors in (
        (oxiseq.run, (QUERY, SOURCES, RUN)),
        (oxiseq.Query.run, (QUERY, SOURCES, RUN)),
        (oxiseq.Query.compare, (QUERY, SOURCES)),
        (oxiseq.Query.why, (QUERY, SOURCES, HISTORY)),
        (oxiseq.Store.register, (QUERY,)),
    ):
        parameters = inspect.signature(function).parameters
        assert set(parameters) - own == names(*doors)
        for name in names(*doors):
            option = OPTIONS[name]
            usual = None if option.default is None else option.kind.write(option.default)
            assert parameters[name].default == usual
            assert f"{name}: {option.help}" in (function.__doc__ or "")


FLAGS = {
    "run": (QUERY, SOURCES, RUN, HISTORY),
    "why": (QUERY, SOURCES, HISTORY),
    "compare": (QUERY, SOURCES, HISTORY),
}


@pytest.mark.parametrize("command", FLAGS)
def test_the_command_line_has_them_as_flags(command: str) -> None:
    params = {param.name: param for param in main.commands[command].params}
    wanted = names(*FLAGS[command]) - ({"limit"} if command in ("run", "compare") else set())
    assert names(QUERY, SOURCES, RUN, STATE, HISTORY) & set(params) == wanted
    for name in wanted:
        assert params[name].opts == [f"--{name.replace('_', '-')}"]
        assert params[name].default in (None, ()) or params[name].default is not params[name].default
        assert OPTIONS[name].help.removesuffix(".") in (params[name].help or "")  # type: ignore[attr-defined]


def test_http_has_them_as_members_and_parameters(client: FlaskClient) -> None:
    assert set(SCHEMAS["NewQuery"]["properties"]) == {"name", "text", "language"} | names(QUERY, STATE)
    document = client.get("/openapi.json").json
    assert document is not None
    for path, method in (("/queries", "post"), ("/queries/{query}", "put")):
        given = {p["name"] for p in document["paths"][path][method]["parameters"]} - {"query", "name"}
        assert given == names(QUERY, STATE)
    once = {p["name"] for p in document["paths"]["/query"]["post"]["parameters"]}
    assert once == names(QUERY)
    why = {p["name"] for p in document["paths"]["/queries/{query}/why"]["get"]["parameters"]}
    assert why == {"query"} | names(HISTORY)


@pytest.mark.parametrize("language", LANGUAGES)
def test_http_tells_all_that_a_query_has_with_defaults(language: str, client: FlaskClient) -> None:
    made = client.put("/queries/q", json={"text": QUERIES[language], "language": language}).json
    assert made is not None
    assert (set(made) & set(OPTIONS)) - names(RUN) == names(QUERY, STATE, language=language)
    for option in options_for(language, (QUERY,)):
        assert made[option.name] == (None if option.default is None else option.kind.write(option.default))


def test_the_reference_is_made_of_them() -> None:
    page = Path(__file__).parents[2] / "docs" / "options.md"
    assert page.read_text(encoding="utf-8") == reference(), "python -m oxiseq.options.reference > docs/options.md"


# --- and take and refuse the same -------------------------------------------------------------------------------------


@pytest.fixture
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    store = oxiseq.Store()
    with LiveService(store, tmp_path_factory.mktemp("journal"), LiveSettings(), "normal") as service:
        endpoint = SparqlEndpoint(store)
        yield create_app(endpoint, ServerSettings(), LiveRoutes(service, endpoint.evaluations)).test_client()


def by_python(language: str, name: str, value: Any, folder: Path) -> str:
    try:
        oxiseq.run(QUERIES[language], streams(), language=language, **{name: value})
    except oxiseq.OxiseqError as error:
        return str(error)
    return ""


def by_register(language: str, name: str, value: Any, folder: Path) -> str:
    try:
        oxiseq.Store().register(QUERIES[language], language, **{name: value})  # type: ignore[call-overload]
    except oxiseq.OxiseqError as error:
        return str(error)
    return ""


def by_command(language: str, name: str, value: Any, folder: Path) -> str:
    (folder / f"q.{language}").write_text(QUERIES[language])
    (folder / "events.nq").write_text("")
    if name == "rules" and isinstance(value, list):
        (folder / "rule").write_text(value[0])
        value = [folder / "rule"]
    if isinstance(value, dict):
        value = [f"{key}={iri}" for key, iri in value.items()]
    flag = f"--{name.replace('_', '-')}"
    given = [f"{flag}={each}" for each in (value if isinstance(value, list) else [value])]
    words = ["run", str(folder / f"q.{language}"), "-s", f"{S}={folder / 'events.nq'}", *given]
    result = CliRunner().invoke(main, words)
    return "" if result.exit_code == 0 else result.stderr


def by_file(language: str, name: str, value: Any, folder: Path) -> str:
    text = QUERIES[language].replace('"', '\\"')
    lines = [f'text = "{text}"', f'language = "{language}"', f"{name} = {toml(value)}", "[[case]]", "expect = 0"]
    path = folder / "x.oxitest.toml"
    path.write_text("\n".join(lines))
    try:
        run_file(path)
    except oxiseq.OxiseqError as error:
        return str(error)
    return ""


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {toml(each)}' for key, each in value.items())} }}"
    return json.dumps(value)


Door = Callable[[str, str, Any, Path], str]
HERE: dict[str, Door] = {"run": by_python, "register": by_register, "command": by_command, "file": by_file}


@pytest.mark.parametrize("door", HERE)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_has_its_options_and_refuses_others(language: str, door: str, tmp_path: Path) -> None:
    for option in options_for(doors=(QUERY,)):
        refusal = HERE[door](language, option.name, VALUES[option.name], tmp_path)
        if option.takes(language):
            assert refusal == "", (option.name, refusal)
        else:
            assert f"the option {option.name} is for {option.titles}: a query of " in refusal


@pytest.mark.parametrize("language", LANGUAGES)
def test_so_does_http(language: str, client: FlaskClient) -> None:
    for option in options_for(doors=(QUERY, STATE)):
        name, value = option.name, VALUES[option.name]
        body = client.put("/queries/q", json={"text": QUERIES[language], "language": language, name: value})
        pairs = [f"{k}={v}" for k, v in value.items()] if isinstance(value, dict) else value
        address = urlencode([(name, each) for each in (pairs if isinstance(pairs, list) else [pairs])])
        media_type = f"application/{language}-query"
        plain = client.put(f"/queries/q?{address}", data=QUERIES[language], content_type=media_type)
        if option.door is QUERY:
            once = client.post(f"/query?{address}", data=QUERIES[language], content_type=media_type)
            assert once.status_code == (200 if option.takes(language) else 400)
        for answer in (body, plain):
            assert answer.json is not None
            if option.takes(language):
                assert answer.status_code == 200, answer.json
                assert answer.json[name] == value
            else:
                assert answer.status_code == 400
                assert f"the option {name} is for {option.titles}: a query of " in answer.json["detail"]


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_value_is_refused_alike(name: str, client: FlaskClient, tmp_path: Path) -> None:
    option = OPTIONS[name]
    language = next((each.name for each in ours() if name in each.options), "spaseq")
    body = {"text": QUERIES[language], "language": language, name: WRONG[name]}
    answer = client.put("/queries/q", json=body)
    assert answer.status_code == 400 and answer.json is not None and name in answer.json["detail"]
    if option.door is QUERY:
        told = {by_python(language, name, WRONG[name], tmp_path), by_register(language, name, WRONG[name], tmp_path)}
        assert len(told) == 1 and name in told.pop()
        for door in (by_file, by_command) if name != "rules" else (by_file,):
            assert door(language, name, WRONG[name], tmp_path)


def test_what_is_no_option_is_refused_with_the_nearest(client: FlaskClient) -> None:
    for ask in (
        lambda: oxiseq.run(QUERIES["spaseq"], streams(), latenes="5s"),  # type: ignore[call-arg]
        lambda: oxiseq.Store().register(QUERIES["spaseq"], latenes="5s"),  # type: ignore[call-overload]
        lambda: said("spaseq", {"latenes": "5s"}),
    ):
        with pytest.raises(oxiseq.OxiseqError, match=r"there is no option 'latenes': lateness\?"):
            ask()
    with pytest.raises(oxiseq.OxiseqError, match="there is no option 'since'"):
        oxiseq.run(QUERIES["spaseq"], streams(), since=1)  # type: ignore[call-arg]
    for old in ("start", "streamNames", "stateBudget", "instants"):
        assert client.post("/queries", json={"text": QUERIES["spaseq"], old: "1"}).status_code == 400
        plain = client.post(f"/queries?{old}=1", data=QUERIES["spaseq"], content_type="application/spaseq-query")
        assert plain.status_code == 400
