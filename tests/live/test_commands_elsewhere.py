"""`oxiseq queries`, `push` and `watch` speak to a server; watching outlives the server's end."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from click.testing import CliRunner, Result
from serve_process import ServeProcess

from oxiseq.cli import main
from oxiseq.cli.sending import NO_MAPPING

STREAM = "http://example.org/payments"
QUERY = f"""PREFIX : <http://example.org/>
SELECT ?who ?paid FROM STREAM S <{STREAM}> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?who :paid ?paid }} }}"""
TOKEN = "s3cret"


def events(low: int, high: int) -> str:
    """Payments, a second after the other."""
    return "".join(
        f"<urn:e{i}> <http://www.w3.org/ns/prov#generatedAtTime> "
        f'"2026-11-20T{10 + i // 3600}:{i // 60 % 60:02}:{i % 60:02}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n'
        f'<http://example.org/ann> <http://example.org/paid> "{i}" <urn:e{i}> .\n'
        for i in range(low, high)
    )


def oxiseq(*arguments: object, url: str | None = None, token: str | None = TOKEN) -> Result:
    """The command, with its settings from the environment."""
    environment = {"OXISEQ_URL": url, "OXISEQ_TOKEN": token}
    return CliRunner().invoke(main, [str(each) for each in arguments], env=environment, catch_exceptions=False)


@pytest.fixture(scope="module")
def sinks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where sinks write to."""
    return tmp_path_factory.mktemp("sinks")


@pytest.fixture(scope="module")
def at_work(tmp_path_factory: pytest.TempPathFactory, sinks: Path) -> Iterator[ServeProcess]:
    """One server for all tests, at a port that stays, for who comes back."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = ServeProcess(
        tmp_path_factory.mktemp("at-work") / "data",
        "--bind",
        f"127.0.0.1:{port}",
        "--write-token",
        TOKEN,
        "--read-token",
        TOKEN,
        "--sink-folder",
        str(sinks),
    )
    process.start()
    yield process
    process.close()


@pytest.fixture
def server(at_work: ServeProcess) -> Iterator[ServeProcess]:
    """It, without queries and streams of another test. The ids of a query's matches go on where its name was used."""
    yield at_work
    with httpx.Client(base_url=at_work.address, headers={"authorization": f"Bearer {TOKEN}"}) as client:
        for query in client.get("/queries").json()["queries"]:
            client.delete(f"/queries/{query['name']}").raise_for_status()
        for stream in client.get("/streams").json()["streams"]:
            client.delete(f"/streams/{quote(stream['iri'], safe='')}").raise_for_status()


def write(folder: Path, name: str, text: str) -> Path:
    """A file."""
    (folder / name).write_text(text)
    return folder / name


def test_queries_are_listed_registered_paused_resumed_and_deleted(server: ServeProcess, tmp_path: Path) -> None:
    url, file = server.address, write(tmp_path, "paid.spaseq", QUERY)
    assert oxiseq("queries", "list", url=url).stdout == ""
    assert oxiseq("queries", "register", file, "--name", "paid", "--lateness", "5s", url=url).stdout == "paid\n"
    heading, row = oxiseq("queries", "list", url=url).stdout.splitlines()
    assert heading.split() == ["name", "language", "state", "events", "late", "matches"]
    assert row.split() == ["paid", "spaseq", "running", "0", "0", "0"]
    assert json.loads(oxiseq("queries", "show", "paid", url=url).stdout)["lateness"] == "5s"
    for verb, state in (("pause", "paused"), ("resume", "running")):
        assert oxiseq("queries", verb, "paid", url=url).exit_code == 0
        (found,) = json.loads(oxiseq("queries", "list", "--json", url=url).stdout)
        assert found["state"] == state
    assert oxiseq("queries", "delete", "paid", url=url).exit_code == 0
    assert oxiseq("queries", "list", url=url).stdout == ""


def test_queries_are_registered_with_all_their_options_and_replaced(server: ServeProcess, tmp_path: Path) -> None:
    url = server.address
    pairs = write(tmp_path, "pairs.ceql", "VOCAB <http://example.org/> SELECT * FROM S WHERE Low AS x; High AS y")
    given = (
        "--stream-names",
        f"S={STREAM}",
        "--origin",
        "2026-11-20",
        "--max-state-records",
        "100",
        "--on-state-limit",
        "drop",
    )
    assert oxiseq("queries", "register", pairs, "--name", "pairs", *given, url=url).exit_code == 0
    shown = json.loads(oxiseq("queries", "show", "pairs", url=url).stdout)
    assert (shown["reads"], shown["origin"], shown["max_state_records"], shown["on_state_limit"]) == (
        [STREAM],
        "2026-11-20T00:00:00Z",
        100,
        "drop",
    )
    again = oxiseq("queries", "register", pairs, "--name", "pairs", url=url)
    assert again.exit_code == 1 and "409" in again.stderr
    assert oxiseq("queries", "register", pairs, "--name", "pairs", "--replace", url=url).stdout == "pairs\n"
    assert json.loads(oxiseq("queries", "show", "pairs", url=url).stdout)["origin"] is None
    assert oxiseq("queries", "register", pairs, "--replace", url=url).exit_code == 2
    over = write(tmp_path, "all.rq", "SELECT ?s { ?s ?p ?o }")
    assert oxiseq("queries", "register", over, "--name", "all", url=url).exit_code == 0
    refused = oxiseq("queries", "register", pairs, "--stream-operator", "rstream", url=url)
    assert refused.exit_code == 1 and "stream_operator is for" in refused.stderr


def test_what_the_server_refuses_is_told_with_its_reason(server: ServeProcess, tmp_path: Path) -> None:
    url = server.address
    wrong = oxiseq("queries", "register", write(tmp_path, "wrong.spaseq", QUERY.replace("SEQ(A)", "SEQ(B)")), url=url)
    assert wrong.exit_code == 1 and "there is no GPM B: line 2, column 75" in wrong.stderr
    missing = oxiseq("watch", "nobody", url=url)
    assert missing.exit_code == 1 and "404" in missing.stderr and "nobody" in missing.stderr
    assert "asks for a token: give it as OXISEQ_TOKEN" in oxiseq("queries", "list", url=url, token=None).stderr
    assert "refuses this token" in oxiseq("queries", "list", url=url, token="other").stderr


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://127.0.0.1:9", "is `oxiseq serve` at work there?"),
        ("nonsense", "'nonsense' is no address of a server: write http://HOST:PORT"),
        ("http://[::1", "is no address of a server"),
        ("ftp://127.0.0.1", "is no address of a server"),
    ],
)
def test_an_address_where_nobody_answers(url: str, said: str) -> None:
    result = oxiseq("queries", "list", url=url)
    assert result.exit_code == 1
    assert said in result.stderr


def test_a_push_is_stored_once_however_often_it_is_made(server: ServeProcess, tmp_path: Path) -> None:
    url, file = server.address, write(tmp_path, "events.nq", events(0, 30))
    missing = oxiseq("push", STREAM, file, url=url)
    assert missing.exit_code == 1
    assert f"there is no stream <{STREAM}>" in missing.stderr and "--create" in missing.stderr
    first = oxiseq("push", STREAM, file, "--create", url=url)
    assert first.exit_code == 0, first.stderr
    assert "30 events accepted" in first.stderr
    again = oxiseq("push", STREAM, file, url=url).stderr
    assert "0 events accepted" in again and "30 were there already" in again
    other = oxiseq("push", STREAM, write(tmp_path, "more.nq", events(30, 40)), "-q", url=url)
    assert (other.exit_code, other.stderr) == (0, "")


def test_a_file_that_has_a_fault_or_has_grown_is_gone_on_with_under_its_session(
    server: ServeProcess, tmp_path: Path
) -> None:
    url, file = server.address, write(tmp_path, "log.nq", events(0, 9000) + "no statement\n" + events(9000, 9010))
    stopped = oxiseq("push", STREAM, file, "--create", url=url)
    assert stopped.exit_code == 1 and ":18001: " in stopped.stderr
    note, told = "--session ", [line for line in stopped.stderr.splitlines() if line.startswith("note: ")]
    assert "8,192 events of log.nq are stored" in told[0]
    session = told[0].partition(note)[2]
    write(tmp_path, "log.nq", events(0, 9010))
    mended = oxiseq("push", STREAM, file, "--session", session, url=url)
    assert "818 events accepted" in mended.stderr and "8,192 were there already" in mended.stderr
    write(tmp_path, "log.nq", events(0, 9013))
    grown = oxiseq("push", STREAM, file, "--session", session, url=url)
    assert "3 events accepted" in grown.stderr and "9,010 were there already" in grown.stderr
    for shorter, count in ((events(0, 5), 5), ("", 0)):  # a log that has begun again: its events are not those
        log = write(tmp_path, "log.nq", shorter)
        refused = oxiseq("push", STREAM, log, "--session", session, url=url)
        assert refused.exit_code == 1, refused.stderr
        assert f"has 9,013 events of the session '{session}', and {log} has {count}: nothing" in refused.stderr
    for wrong, said in ((("--session", "ä"), "session='ä': it has 1 to 200"), (("--session", "s", file), "one by one")):
        refused = oxiseq("push", STREAM, file, *wrong, url=url)
        assert refused.exit_code == 1 and said in refused.stderr


def test_a_pipe_is_not_pushed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.nq")  # nobody writes to it: whoever opened it would wait
    refused = oxiseq("push", STREAM, str(tmp_path / "pipe.nq"), url="http://127.0.0.1:9")
    assert refused.exit_code == 1 and "is neither a file nor a folder: `oxiseq bridge -`" in refused.stderr


def test_tables_are_pushed_by_a_mapping_of_their_own_or_the_streams(server: ServeProcess, tmp_path: Path) -> None:
    url, headers = server.address, {"authorization": f"Bearer {TOKEN}"}
    table = write(tmp_path, "paid.csv", "who,paid,ts\nann,1,1700000000\nbob,x,1700000001\ncy,3,soon\ndi,4,1700000003\n")
    lines = write(tmp_path, "paid.jsonl", '{"who": "eve", "paid": 5, "ts": 1700000004}\n')
    given = {
        "subject": "http://example.org/{who}",
        "time": "ts",
        "unit": "s",
        "predicates": {"http://example.org/paid": {"column": "paid", "datatype": "xsd:integer"}},
    }
    mapping = write(tmp_path, "paid.json", json.dumps(given))
    oxiseq("queries", "register", write(tmp_path, "paid.spaseq", QUERY), "--name", "paid", url=url)
    assert NO_MAPPING in oxiseq("push", STREAM, table, url=url).stderr
    stopped = oxiseq("push", STREAM, table, "-m", mapping, url=url)
    assert stopped.exit_code == 1 and "paid.csv:3: paid: 'x' is no xsd:integer" in stopped.stderr
    pushed = oxiseq("push", STREAM, table, "-m", mapping, "--on-error", "skip", url=url)
    assert pushed.exit_code == 0, pushed.stderr
    assert "2 events accepted" in pushed.stderr and "2 skipped" in pushed.stderr and ":4: ts: " in pushed.stderr
    httpx.put(f"{url}/streams/{quote(STREAM, safe='')}", json={"mapping": given}, headers=headers).raise_for_status()
    own = oxiseq("push", STREAM, lines, url=url)
    assert "1 event accepted" in own.stderr
    assert "1 were there already" in oxiseq("push", STREAM, lines, url=url).stderr
    lacking, bare = write(tmp_path, "lacking.csv", "who,ts\nann,1\n"), write(tmp_path, "bare.csv", "who,paid,ts\n")
    assert "lacking.csv: no column 'paid', which the mapping reads" in oxiseq("push", STREAM, lacking, url=url).stderr
    assert f"no event came of {bare}" in oxiseq("push", STREAM, bare, url=url).stderr
    untimed = write(tmp_path, "untimed.json", json.dumps({**given, "time": None}))
    assert "the mapping has no time" in oxiseq("push", STREAM, lines, "-m", untimed, url=url).stderr
    watched = oxiseq("watch", "paid", "--after", "0", "--limit", "3", url=url).stdout.splitlines()
    assert [json.loads(row)["bindings"]["paid"]["value"] for row in watched] == ["1", "4", "5"]


def test_sinks_are_put_listed_shown_and_deleted(server: ServeProcess, tmp_path: Path, sinks: Path) -> None:
    url = server.address
    oxiseq("queries", "register", write(tmp_path, "paid.spaseq", QUERY), "--name", "sold", url=url)
    oxiseq("push", STREAM, write(tmp_path, "events.nq", events(0, 3)), url=url)
    settings = write(tmp_path, "file.toml", 'kind = "file"\npath = "paid.jsonl"\ntemplate = "{?paid}"\n')
    assert oxiseq("queries", "sink", "list", "sold", url=url).stdout == ""
    put = oxiseq("queries", "sink", "put", "sold", "log", settings, "--after", "0", url=url)
    assert put.exit_code == 0, put.stderr
    end = time.monotonic() + 60
    while True:
        heading, row = oxiseq("queries", "sink", "list", "sold", url=url).stdout.splitlines()
        assert heading.split() == ["id", "kind", "state", "delivered", "waiting", "lost"]
        if row.split() == ["log", "file", "delivering", "3", "0", "0"]:
            break
        assert time.monotonic() < end, row
        time.sleep(0.05)
    assert (sinks / "paid.jsonl").read_text().split() == ['"0"', '"1"', '"2"']
    shown = json.loads(oxiseq("queries", "sink", "show", "sold", "log", url=url).stdout)
    assert (shown["kind"], shown["position"], shown["error"]) == ("file", 3, None)
    assert oxiseq("queries", "sink", "delete", "sold", "log", url=url).exit_code == 0
    assert oxiseq("queries", "sink", "list", "sold", url=url).stdout == ""


def test_sinks_that_are_refused(server: ServeProcess, tmp_path: Path) -> None:
    url = server.address
    oxiseq("queries", "register", write(tmp_path, "paid.spaseq", QUERY), "--name", "paid", url=url)
    nonsense = oxiseq("queries", "sink", "put", "paid", "log", write(tmp_path, "no.toml", "= 1"), url=url)
    assert nonsense.exit_code == 2 and "neither JSON nor TOML" in nonsense.stderr
    mail = {"kind": "mail", "host": "mail.example.org", "sender": "a@example.org", "to": ["b@example.org"]}
    outside = oxiseq("queries", "sink", "put", "paid", "m", write(tmp_path, "m.json", json.dumps(mail)), url=url)
    assert outside.exit_code == 1 and "--sink-host" in outside.stderr
    for verb in ("show", "delete"):
        gone = oxiseq("queries", "sink", verb, "paid", "log", url=url)
        assert gone.exit_code == 1 and "404" in gone.stderr


@pytest.mark.full
@pytest.mark.slow
def test_watching_goes_on_behind_the_last_match_after_a_kill(server: ServeProcess, tmp_path: Path) -> None:
    url, headers = server.address, {"authorization": f"Bearer {TOKEN}"}
    oxiseq("queries", "register", write(tmp_path, "paid.spaseq", QUERY), "--name", "watched", url=url)
    command = [sys.executable, "-m", "oxiseq", "watch", "watched", "--limit", "39", "--url", url]
    environment = {**os.environ, "OXISEQ_TOKEN": TOKEN}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as watch:
        assert watch.stdout is not None and watch.stderr is not None
        while "oxiseq_subscribers 1.0" not in httpx.get(f"{url}/metrics", headers=headers).text:
            time.sleep(0.05)
        oxiseq("push", STREAM, write(tmp_path, "first.nq", events(0, 20)), url=url)
        found = [json.loads(watch.stdout.readline())]
        server.kill()
        server.start()
        oxiseq("push", STREAM, write(tmp_path, "second.nq", events(20, 40)), url=url)
        found += [json.loads(line) for line in watch.stdout]
        told = watch.stderr.read()
    assert watch.returncode == 0, told
    assert [each["id"] for each in found] == list(range(1, 40))
    assert [each["bindings"]["paid"]["value"] for each in found] == [str(i) for i in range(39)]
    assert "again in 0.5 s" in told


def test_watching_a_query_that_is_deleted_ends_with_an_error(server: ServeProcess, tmp_path: Path) -> None:
    url = server.address
    oxiseq("queries", "register", write(tmp_path, "paid.spaseq", QUERY), "--name", "paid", url=url)
    command = [sys.executable, "-m", "oxiseq", "watch", "paid", "--after", "0", "--url", url]
    environment = {**os.environ, "OXISEQ_TOKEN": TOKEN}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as watch:
        assert watch.stdout is not None
        oxiseq("push", STREAM, write(tmp_path, "first.nq", events(0, 5)), url=url)
        watch.stdout.readline()
        oxiseq("queries", "delete", "paid", url=url)
        _, told = watch.communicate(timeout=60)
    assert watch.returncode == 1
    assert "the query paid: deleted" in told


def test_an_answer_of_the_store_is_watched(server: ServeProcess) -> None:
    url, headers = server.address, {"authorization": f"Bearer {TOKEN}"}
    text = "SELECT ?s { ?s <http://example.org/p> 1 }"
    httpx.post(f"{url}/queries", json={"text": text, "language": "sparql", "name": "all"}, headers=headers)
    httpx.post(
        f"{url}/update",
        headers={**headers, "content-type": "application/sparql-update"},
        content="INSERT DATA { <http://example.org/a> <http://example.org/p> 1 }",
    )
    watched = oxiseq("watch", "all", "--limit", "1", url=url)
    assert "http://example.org/a" in watched.stdout
