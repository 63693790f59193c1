"""What a browser can be made to send: forms of foreign pages, foreign names of this machine; and wrong tokens."""

from __future__ import annotations

import time
from collections.abc import Iterator

import flask.testing
import pytest

from oxiseq.api.store import Store
from oxiseq.server import ServerSettings, Tokens, access, create_app
from oxiseq.server.access import KnownHosts, WrongTokens, client_group
from oxiseq.sparql import Problem, SparqlEndpoint

FOREIGN = "http://evil.example"
UPDATE = "INSERT DATA { <http://e/a> <http://e/p> 1 }"


class Server:
    """An application and its store."""

    def __init__(self, **settings: object) -> None:
        self.store = Store()
        app = create_app(SparqlEndpoint(self.store), ServerSettings(**settings))  # type: ignore[arg-type]  # of a test
        self.client: flask.testing.FlaskClient = app.test_client()

    def form(self, **headers: str) -> int:
        """The status of a form that is posted to /update."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.post("/update", data={"update": UPDATE}, headers=named).status_code

    def readable_by(self, origin: str) -> str | None:
        """Whose pages may read an answer that a page of this origin asks for."""
        answer = self.client.get("/query?query=ASK{}", headers={"Origin": origin})
        return answer.headers.get("Access-Control-Allow-Origin")

    def ask(self, host: str | None = None, token: str | None = None, client: str = "10.0.0.1") -> int:
        """The status of a query."""
        headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        if host is not None:
            headers["Host"] = host
        answer = self.client.get("/query?query=ASK{}", headers=headers, environ_overrides={"REMOTE_ADDR": client})
        return answer.status_code


@pytest.fixture
def plain() -> Iterator[Server]:
    """As `oxiseq serve` starts."""
    yield Server()


@pytest.mark.parametrize(
    "headers",
    [{"Origin": FOREIGN}, {"Origin": "null"}, {"Origin": "http://localhost:3000"}, {"Sec_Fetch_Site": "cross-site"}],
    ids=["another host", "none of its own", "another port", "not told, but foreign"],
)
def test_a_form_on_a_foreign_page_writes_nothing(plain: Server, headers: dict[str, str]) -> None:
    assert plain.form(**headers) == 403
    assert len(plain.store) == 0


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/store?default"), ("PUT", "/store?default"), ("DELETE", "/store?default"), ("POST", "/elsewhere")],
)
def test_no_other_door_is_open_to_a_foreign_page(plain: Server, method: str, path: str) -> None:
    sent = {"Origin": FOREIGN, "Content-Type": "text/turtle"}
    assert plain.client.open(path, method=method, data="<a:b> <a:b> 1 .", headers=sent).status_code == 403
    assert len(plain.store) == 0


def test_our_own_page_and_no_page_write(plain: Server) -> None:
    assert plain.form() == 204
    assert plain.form(Origin="http://localhost") == 204  # the client's own host
    assert plain.form(Origin="http://127.0.0.1:7878", Host="127.0.0.1:7878") == 204


def test_an_origin_that_is_named_writes_and_any_other_only_reads() -> None:
    named = Server(cors=("https://app.example",))
    assert named.form(Origin="https://app.example") == 204
    assert named.form(Origin=FOREIGN) == 403
    assert named.readable_by("https://app.example") == "https://app.example"
    assert named.readable_by(FOREIGN) is None
    anybody = Server(cors=("*",))
    assert anybody.form(Origin=FOREIGN) == 403
    assert anybody.readable_by(FOREIGN) == "*"


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:7878", "127.0.0.1", "127.3.2.1:1", "[::1]:7878", "a.localhost."]
)
def test_loopback_names_are_known(plain: Server, host: str) -> None:
    assert plain.ask(host) == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:7878", "localhost.evil.example", "10.0.0.1", "a b", "", "localhost, evil.example"],
)
def test_another_host_is_not_answered(plain: Server, host: str) -> None:
    assert plain.ask(host) == 421
    for path in ("/", "/ui/server.json", "/health", "/streams", "/nothing"):
        assert plain.client.get(path, headers={"Host": host}).status_code == 421


def test_hosts_are_named_or_where_the_server_listens() -> None:
    assert Server(allowed_hosts=("sparql.example",)).ask("SPARQL.example:80") == 200
    assert Server(allowed_hosts=("*",)).ask("evil.example") == 200
    assert Server(host="10.0.0.7").ask("10.0.0.7:7878") == 200
    assert Server(host="10.0.0.7").ask("10.0.0.8") == 421
    everywhere = Server(host="0.0.0.0")
    assert everywhere.ask("10.0.0.8:7878") == 200  # a number leads nowhere else
    assert everywhere.ask("evil.example") == 421
    assert KnownHosts("::", (), lambda environ, start: []).knows("[2001:db8::1]:7878")


def test_wrong_tokens_are_throttled_and_the_right_one_is_not_locked_out_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(access, "_PERIOD", 1.0)
    server = Server(tokens=Tokens("right", "write"))
    begin = time.monotonic()
    answers = [server.ask(token=f"wrong{i}") for i in range(1000)]
    assert set(answers) == {401, 429}
    assert answers.count(401) <= 10 * (time.monotonic() - begin + 1)  # ten in each period
    assert server.ask(token="right", client="10.0.0.2") == 200  # another client
    begin = time.monotonic()
    while server.ask(token="right") != 200:
        assert time.monotonic() - begin < 5
        time.sleep(0.05)


def test_behind_a_proxy_clients_are_told_apart_by_its_word_alone() -> None:
    def asked(server: Server, token: str, forwarded: str) -> int:
        headers = {"Authorization": f"Bearer {token}", "X-Forwarded-For": forwarded}
        return server.client.get("/query?query=ASK{}", headers=headers).status_code

    behind = Server(tokens=Tokens("right", "write"), behind_proxy=True)
    answers = [asked(behind, "wrong", f"10.9.9.{number}, 10.0.0.1") for number in range(30)]
    assert answers.count(401) == 10
    assert answers[-1] == 429
    assert asked(behind, "right", "10.0.0.1, 10.0.0.2") == 200
    open_to_all = Server(tokens=Tokens("right", "write"))
    assert [asked(open_to_all, "wrong", f"10.0.0.{number}") for number in range(30)][-1] == 429


def test_a_throttled_client_is_told_when_to_come_back() -> None:
    server = Server(tokens=Tokens("right", "write"))
    for _ in range(10):
        assert server.ask(token="wrong") == 401
    told = server.client.get(
        "/query?query=ASK{}", headers={"Authorization": "Bearer right"}, environ_overrides={"REMOTE_ADDR": "10.0.0.1"}
    )
    assert told.status_code == 429
    assert 1 <= int(told.headers["Retry-After"]) <= 5
    assert server.ask() == 401  # without a token: asked for one, as ever


def test_the_table_of_clients_is_bounded() -> None:
    wrong = WrongTokens()
    for number in range(30_000):
        wrong.note(f"10.0.{number >> 8}.{number & 255}")
    assert len(wrong) == 10_000
    for _ in range(10):
        wrong.note("latest")
    with pytest.raises(Problem, match="too many wrong tokens"):
        wrong.check("latest")
    assert client_group("2001:db8::1") == client_group("2001:db8::ffff:1") != client_group("2001:db8:0:1::1")
