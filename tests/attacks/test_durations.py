"""Durations at every door: one table of what is refused, one of what is taken, one of the doors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import click
import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient

import oxiseq
from oxiseq.cli import main
from oxiseq.cli.options import Duration
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.api import LiveRoutes
from oxiseq.live.settings import options_of
from oxiseq.logs import arrange
from oxiseq.server import ServerSettings, create_app
from oxiseq.sparql import SparqlEndpoint
from oxiseq.testing.cases import load_cases

P = "PREFIX : <http://e/> "
WHERE = "WHERE { ?x :p ?y }"
QUERIES = {
    "spaseq": P + "SELECT * FROM STREAM S <urn:s> WHERE { SEQ(A) DEFINE GPM A ON S { ?x :p ?y } }",
    "ceql": "VOCAB <urn:> SELECT * FROM s WHERE A",
    "epsparql": P + f"SELECT * FROM STREAM <urn:s> {WHERE}",
    "rspql": P + f"SELECT * FROM STREAM <urn:s> [RANGE 10 SLIDE 1] {WHERE}",
    "spectra": P + f"SELECT * FROM STREAM <urn:s> [RANGE 10 SECONDS SLIDE 1 SECONDS] {WHERE}",
    "rsepql": P + "SELECT * FROM NAMED WINDOW :w ON <urn:s> [LND 0] EVENT ON :w { ?x :p ?y } AS A"
    " WHERE { MATCH { A } }",
}
QUERY = QUERIES["spaseq"]
RANGE = "0s to 3652425d (10,000 years)"
OF_FILES = "1us to 3652425d (10,000 years)"
OF_WAITING = "0s to 24d"
REFUSED: dict[str, tuple[Any, str]] = {
    "a number": (5, 'say "5s" or "5us"'),
    "a fraction": (2.5, 'say "2.5s"'),
    "a number as text": ("5", 'say "5s" or "5us"'),
    "nothing": (0, 'say "0s"'),
    "a large number": (10**15, f'say "{10**15}us"'),
    "a negative number": (-5, RANGE),
    "negative": ("-5s", RANGE),
    "negative in ISO": ("-PT5S", RANGE),
    "not a number": (float("nan"), RANGE),
    "infinite": (float("inf"), RANGE),
    "endless": (10**300, RANGE),
    "over 10,000 years": ("3652426d", RANGE),
    "over 10,000 years in ISO": ("P3652426D", RANGE),
    "a month": ("P1M", "months"),
    "a year": ("P1Y", "months"),
    "half a microsecond": ("0.5us", "finer than a microsecond"),
    "half a microsecond in ISO": ("PT0.0000005S", "finer than a microsecond"),
    "another unit": ("5 parsecs", "is not a duration"),
    "true": (True, "is not a duration"),
    "many digits": ("9" * 200 + "s", "is not a duration"),
    "many parts": ("1s" * 5_000, "is not a duration"),
    "other digits": ("٥s", "is not a duration"),
}
TAKEN = ("0s", "5s", "PT5S", "2 min", "1h30m", "7us", "250ms", "P1DT2H", "1d")
LATE_COMMANDS = {
    "run": ("q.spaseq", "--stream", "events.nq"),
    "why": ("q.spaseq", "--stream", "events.nq"),
    "compare": ("q.spaseq", "--against", "q.spaseq", "--stream", "S=events.nq"),
    "run over a log": ("q.spaseq", "--location", "."),
}
SETTINGS = {
    "timeout": OF_WAITING,
    "upstream-refresh": OF_WAITING,
    "stream-idle": RANGE,
    "retention": RANGE,
    "max-ahead": RANGE,
    "event-triples-for": RANGE,
}


class Door(NamedTuple):
    """`ask` gives it a duration, and returns what is said against it, nothing if it is taken."""

    name: str
    ask: Callable[[Any], str]
    allowed: str = RANGE

    def expected(self, case: str) -> tuple[Any, str]:
        """What is given to it, and what it has to say."""
        given, reason = REFUSED[case]
        beyond = (case, self.allowed) in {("a large number", OF_WAITING), ("nothing", OF_FILES)}
        return given, self.allowed if reason == RANGE or beyond else reason


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("durations")
    (made / "q.spaseq").write_text(QUERY)
    (made / "events.nq").write_text("")
    return made


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    store = oxiseq.Store()
    endpoint = SparqlEndpoint(store)
    with LiveService(store, tmp_path_factory.mktemp("journal"), LiveSettings(), "normal") as service:
        yield create_app(endpoint, ServerSettings(), LiveRoutes(service, endpoint.evaluations)).test_client()


# --- the doors --------------------------------------------------------------------------------------


def python_doors(folder: Path) -> Iterator[Door]:
    streams: Any = {"urn:s": []}
    calls: dict[str, Callable[[Any], object]] = {}
    for name, text in QUERIES.items():
        calls[f"run {name}"] = lambda d, n=name, t=text: oxiseq.run(t, streams, language=n, lateness=d)
        calls[f"register {name}"] = lambda d, n=name, t=text: oxiseq.Store().register(t, language=n, lateness=d)
        calls[f"why {name}"] = lambda d, n=name, t=text: oxiseq.Query(t, n).why(streams, lateness=d)
        calls[f"compare {name}"] = lambda d, n=name, t=text: oxiseq.Query(t, n).compare(t, streams, lateness=d)
    calls["arrange"] = lambda d: arrange(folder / "events.nq", folder / "arranged", every=d)
    calls["spark"] = lambda d: spark_match(d)
    for name, call in calls.items():
        yield Door(name, lambda d, call=call: error_of(call, d), OF_FILES if name == "arrange" else RANGE)


def spark_match(lateness: Any) -> object:
    """Refuses before it asks a session for anything."""
    from oxiseq.spark import match  # noqa: PLC0415  loads pyspark, which no other door needs

    return match(None, QUERY, {}, lateness=lateness)  # type: ignore[arg-type]


def error_of(call: Callable[[Any], object], given: Any) -> str:
    try:
        call(given)
    except oxiseq.OxiseqError as error:
        return str(error)
    return ""


def file_doors(folder: Path) -> Iterator[Door]:
    """TOML: settings, and files of tests."""

    def case(given: Any) -> str:
        file = folder / "some.oxitest.toml"
        file.write_text(f"text = '''{QUERY}'''\nlateness = {toml(given)}\n[[case]]\nexpect = 0\n")
        return error_of(load_cases, file)

    def setting(name: str, given: Any) -> str:
        file = folder / "settings.toml"
        file.write_text(f"[serve]\n{name.replace('-', '_')} = {toml(given)}\n")
        return said_by("serve", "--print-config", "--config", str(file))

    yield Door("test file", case)
    for name, allowed in SETTINGS.items():
        yield Door(f"file {name}", lambda d, name=name: setting(name, d), allowed)


def command_doors(folder: Path) -> Iterator[Door]:
    for command, given in LATE_COMMANDS.items():
        places = [str(folder / a) if (folder / a).exists() else a.replace("S=", f"S={folder}/") for a in given]
        yield Door(command, lambda d, c=command, p=places: said_by(c.split()[0], *p, f"--lateness={d}"))
    events = (str(folder / "events.nq"), "--output", str(folder / "out"))
    yield Door("import", lambda d: said_by("import", *events, f"--every={d}"), OF_FILES)
    yield Door("declare", lambda d: said_by("declare", "response", "A", "B", f"--within={d}"), OF_FILES)
    for name, allowed in SETTINGS.items():
        yield Door(f"--{name}", lambda d, name=name: said_by("serve", "--print-config", f"--{name}={d}"), allowed)
        variable = "OXISEQ_" + name.replace("-", "_").upper()
        yield Door(variable, lambda d, v=variable: said_by("serve", "--print-config", environment={v: str(d)}), allowed)


def said_by(*arguments: str, environment: dict[str, str] | None = None) -> str:
    """What a command says against its arguments."""
    result = CliRunner().invoke(main, list(arguments), env=environment)
    assert result.exit_code in (0, 1, 2) and not isinstance(result.exception, OverflowError), result.output
    return result.output if result.exit_code == 2 else ""


def http_doors(client: FlaskClient) -> Iterator[Door]:
    path = f"/streams/{quote('urn:kept', safe='')}"
    client.put(path)
    keep = {"POST": ("/streams", {"iri": "urn:kept"}), "PUT": (path, {}), "PATCH": (path, {})}
    for method, (where, more) in keep.items():
        yield Door(
            f"{method} keep",
            lambda d, m=method, w=where, more=more: refused(client, m, w, json={**more, "retention": {"for": d}}),
        )
    for method, where in (("POST", "/queries"), ("PUT", "/queries/q")):
        yield Door(
            f"{method} lateness",
            lambda d, m=method, w=where: refused(client, m, w, json={"text": QUERY, "lateness": d}),
        )
        yield Door(
            f"{method} ?lateness=",
            lambda d, m=method, w=where: refused(
                client, m, w, data=QUERY, content_type="application/spaseq-query", query_string={"lateness": str(d)}
            ),
        )


def refused(client: FlaskClient, method: str, path: str, **more: Any) -> str:
    answer = client.open(path, method=method, **more)
    assert answer.status_code in (200, 201, 400), answer.text
    return str(answer.json["detail"]) if answer.status_code == 400 and answer.json else ""


def toml(given: Any) -> str:
    """A TOML value: numbers as numbers."""
    return json.dumps(given, ensure_ascii=False) if isinstance(given, bool | str) else str(given)


# --- what they do -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_duration_is_refused_at_every_door(folder: Path, client: FlaskClient, name: str) -> None:
    for door in (*file_doors(folder), *command_doors(folder), *http_doors(client)):
        given, reason = door.expected(name)
        told = door.ask(given)
        assert reason in told, (door.name, told)
        assert "timedelta(" not in told and len(told) < 600, (door.name, told)
    for door in python_doors(folder):
        given, reason = door.expected(name)
        told, timedelta_told = door.ask(given), f" (or timedelta(seconds={given}))"
        assert reason in told.replace(timedelta_told, ""), (door.name, told)
        assert (timedelta_told in told) == (reason.startswith("say") and given in (5, 2.5, 0)), (door.name, told)


def test_every_spelling_is_taken_at_every_door(folder: Path, client: FlaskClient) -> None:
    for door in (*file_doors(folder), *command_doors(folder), *http_doors(client)):
        for given in TAKEN:
            if given != "0s" or door.allowed != OF_FILES:
                assert door.ask(given) == "", (door.name, given)


def test_no_option_of_a_command_is_forgotten() -> None:
    options = {
        (name, max(option.opts, key=len).removeprefix("--"))
        for name, command in main.commands.items()
        for option in command.params
        if isinstance(option.type, Duration)
    }
    expected = {(name.split()[0], "lateness") for name in LATE_COMMANDS} | {("serve", name) for name in SETTINGS}
    assert options == expected | {("import", "every"), ("declare", "within")}
    floats = {
        option.name
        for command in main.commands.values()
        for option in command.params
        if isinstance(option.type, click.types.FloatParamType)
    }
    assert floats == set()


def test_python_takes_texts_and_timedeltas() -> None:
    graph = "<http://e/x> <http://e/p> 1 ."

    def streams() -> dict[str, Iterator[tuple[int, str]]]:
        return {"urn:s": iter([(9_000_000, graph), (4_000_000, graph)])}

    for short, enough in (("4999ms", "5s"), (timedelta(microseconds=4_999_999), timedelta(seconds=5))):
        assert oxiseq.run(QUERY, streams(), lateness=short, late="ignore").late == 1
        assert oxiseq.run(QUERY, streams(), lateness=enough).late == 0
        assert oxiseq.Query(QUERY).why(streams(), lateness=enough).late == 0
    with pytest.raises(oxiseq.OxiseqError, match=r"lateness=timedelta.* is out of range"):
        oxiseq.run(QUERY, streams(), lateness=timedelta(microseconds=-1))
    with pytest.raises(oxiseq.OxiseqError, match="every=0s is out of range: 1us to"):
        arrange("nowhere", "nowhere", every="0s")


def test_seconds_are_no_way_to_say_how_long_a_stream_keeps(client: FlaskClient) -> None:
    told = refused(client, "POST", "/streams", json={"iri": "urn:old", "retention": {"seconds": 3600}})
    assert '{"for": "1h", "count": 1000}' in told


def test_what_is_given_exactly_is_told_exactly(client: FlaskClient) -> None:
    for given, told in (
        ("3652425d", "3652425d"),
        ("P3652424DT23H59M59.999999S", "315569519999999999us"),
        ("4.35s", "4350ms"),
        ("0.000001s", "1us"),
    ):
        made = client.put("/streams/urn%3Aexact", json={"retention": {"for": given}}).json
        assert made and made["retention"] == {"for": told, "count": None}
        made = client.put("/queries/exact", json={"text": QUERY, "lateness": given}).json
        assert made and made["lateness"] == told


def test_a_stored_lateness_has_its_unit() -> None:
    assert options_of("spaseq", {"lateness": "5s"}).lateness == 5_000_000
    for damaged in (-1, 5.0, 5_000_000, True, 10**18, "5"):
        with pytest.raises(oxiseq.OxiseqError, match="lateness="):
            options_of("spaseq", {"lateness": damaged})
