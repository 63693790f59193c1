"""Webhooks: a local server gets each match, signed, once it confirms; and whom a sink may reach."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hot_service import HOT, LOOPBACK, hot
from live_services import eventually
from sink_receivers import Webhooks, dripping, webhooks
from standardwebhooks.webhooks import Webhook as Verifier
from standardwebhooks.webhooks import WebhookVerificationError

from oxiseq.rights import Rights, grant_of
from oxiseq.sinks import Allowed
from oxiseq.sinks.allowed import DeliveryError
from oxiseq.sinks.delivery import Delivery
from oxiseq.sinks.webhook import _Poster

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
def receiver() -> Iterator[Webhooks]:
    with webhooks() as made:
        yield made


def hook(receiver: Webhooks, **more: Any) -> dict[str, Any]:
    return {"kind": "webhook", "url": receiver.url, **more}


def test_each_match_is_posted_with_its_template_filled(tmp_path: Path, receiver: Webhooks) -> None:
    template = {
        "text": "{?machine} has {?heat}°{{",
        "heat": "{?heat}",
        "note": "{?note}",
        "n": ["{id}", True, 1.5],
        "key": "{key}",
        "{query}": "{at}",
        "all": "{bindings}",
    }
    with hot(tmp_path) as doors:
        doors.put("chat", hook(receiver, template=template))
        doors.push(2)
        receiver.wait(2)
        eventually(lambda: doors.sink("chat")["delivered"] == 2)
        status = doors.sink("chat")
    first = json.loads(receiver.seen[0][1])
    machine = "http://example.org/m1"
    assert first["all"].pop("machine") == {"type": "uri", "value": machine}
    assert first == {
        "text": f"{machine} has 1°{{",
        "heat": 1,
        "note": None,
        "n": [1, True, 1.5],
        "key": "hot/1",
        "hot": "2024-05-01T10:00:00.000001Z",
        "all": {"heat": {"type": "literal", "value": "1", "datatype": "http://www.w3.org/2001/XMLSchema#integer"}},
    }
    assert receiver.keys == ["hot/1", "hot/2"]
    assert (status["position"], status["waiting"], status["lost"], status["error"]) == (2, 0, 0, None)


def test_a_request_is_signed_as_the_standard_has_it(tmp_path: Path, receiver: Webhooks) -> None:
    with hot(tmp_path) as doors:
        doors.put("signed", hook(receiver, secret=SECRET, headers={"Authorization": "Bearer t"}))
        doors.push()
        receiver.wait(1)
    headers, body = receiver.seen[0]
    told = Verifier(SECRET).verify(body, headers)
    assert told["id"] == 1 and headers["authorization"] == "Bearer t"
    with pytest.raises(WebhookVerificationError):
        Verifier(SECRET).verify(body + b" ", headers)


def test_a_receiver_that_refuses_gets_the_same_again_until_it_confirms(tmp_path: Path, receiver: Webhooks) -> None:
    tried: list[str] = []

    def answer(headers: Mapping[str, str], body: bytes) -> tuple[int, Mapping[str, str]]:
        tried.append(headers["idempotency-key"])
        return (503, {"Retry-After": "0"}) if len(tried) < 4 else (204, {})

    receiver.answer = answer
    with hot(tmp_path) as doors:
        doors.put("chat", hook(receiver))
        doors.push(2)
        receiver.wait(2)
        eventually(lambda: doors.sink("chat")["state"] == "delivering" and doors.sink("chat")["delivered"] == 2)
        assert b'oxiseq_sink_failures_total{query="hot",sink="chat"} 3.0' in doors.service.metrics.text()
    assert tried == ["hot/1"] * 4 + ["hot/2"]


def test_who_fails_is_told_and_holds_up_nobody_else(tmp_path: Path, receiver: Webhooks) -> None:
    receiver.answer = lambda headers, body: (400 if b'"bad"' in body else 200, {})
    with hot(tmp_path) as doors:
        doors.put("bad", hook(receiver, template={"who": "bad"}))
        doors.put("good", hook(receiver, template={"who": "good"}))
        doors.push(5)
        receiver.wait(5)
        eventually(lambda: doors.sink("bad")["error"] is not None)
        status, good = doors.sink("bad"), doors.sink("good")
        assert "answers 400" in status["error"] and status["failing_since"] and status["waiting"] == 5
        eventually(lambda: doors.sink("bad")["next_try"] is not None)
        assert good["state"] == "delivering"
        assert doors.service.queries.get("hot").record.next == 6
        assert b'oxiseq_sink_failing{query="hot",sink="bad"} 1.0' in doors.service.metrics.text()


def test_what_is_given_up_is_counted_as_lost_and_the_rest_is_delivered(tmp_path: Path, receiver: Webhooks) -> None:
    receiver.answer = lambda headers, body: (400 if headers["idempotency-key"] == "hot/2" else 200, {})
    with hot(tmp_path) as doors:
        doors.put("chat", hook(receiver, give_up="50ms"))
        doors.push(3)
        receiver.wait(2)
        eventually(lambda: doors.sink("chat")["position"] == 3)
        assert doors.sink("chat")["lost"] == 1
    assert receiver.keys == ["hot/1", "hot/3"]


def test_a_batch_is_a_list(tmp_path: Path, receiver: Webhooks) -> None:
    with hot(tmp_path) as doors:
        doors.put("list", hook(receiver, batch=3, every="10s", template="{?heat}"))
        doors.push(7)
        receiver.wait(2)
    assert [json.loads(body) for _, body in receiver.seen] == [[1, 2, 3], [4, 5, 6]]
    assert receiver.keys == ["hot/1-3", "hot/4-6"]


def test_of_a_delivery_that_is_confirmed_in_part_the_rest_comes_again(
    tmp_path: Path, receiver: Webhooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, failed = _Poster.deliver, [False]

    def deliver(self: _Poster, delivery: Delivery) -> str:
        if failed[0]:
            return usual(self, delivery)
        failed[0] = True
        raise DeliveryError("there is no more room", confirmed=2)

    monkeypatch.setattr(_Poster, "deliver", deliver)
    with hot(tmp_path) as doors:
        doors.put("list", hook(receiver, batch=3, every="10s", template="{?heat}"))
        doors.push(6)
        receiver.wait(2)
        eventually(lambda: doors.sink("list")["delivered"] == 6)
    assert [json.loads(body) for _, body in receiver.seen] == [[3], [4, 5, 6]]


def test_since_begins_with_what_is_kept_and_without_it_with_what_comes(tmp_path: Path, receiver: Webhooks) -> None:
    with hot(tmp_path) as doors:
        doors.push(3)
        eventually(lambda: doors.service.queries.get("hot").record.next == 4)
        doors.put("new", hook(receiver, template="new {id}"))
        doors.put("all", hook(receiver, template="all {id}", after=1))
        doors.push()
        receiver.wait(4)
    assert sorted(json.loads(body) for _, body in receiver.seen) == ["all 2", "all 3", "all 4", "new 4"]


def test_put_again_goes_on_where_it_stands(tmp_path: Path, receiver: Webhooks) -> None:
    with hot(tmp_path) as doors:
        doors.put("chat", hook(receiver))
        doors.push(2)
        receiver.wait(2)
        eventually(lambda: doors.sink("chat")["delivered"] == 2)
        doors.put("chat", hook(receiver, template="{id}"))
        doors.push()
        receiver.wait(3)
    assert receiver.keys == ["hot/1", "hot/2", "hot/3"]
    assert receiver.seen[2][1] == b"3"


def test_a_restart_goes_on(tmp_path: Path, receiver: Webhooks) -> None:
    receiver.answer = lambda headers, body: (503, {})
    with hot(tmp_path) as doors:
        doors.put("chat", hook(receiver))
        doors.push(2)
        eventually(lambda: receiver.refused > 0)
    receiver.answer = lambda headers, body: (200, {})
    with hot(tmp_path) as doors:
        receiver.wait(2)
        doors.push()
        receiver.wait(3)
    assert receiver.keys == ["hot/1", "hot/2", "hot/3"]


def test_a_deleted_query_takes_its_sinks_along(tmp_path: Path, receiver: Webhooks) -> None:
    with hot(tmp_path) as doors:
        doors.put("chat", hook(receiver))
        assert doors.ask("DELETE", "/queries/hot")[0] == 204
        assert doors.ask("GET", "/queries/hot/sinks/chat")[0] == 404
        doors.service.queries.register("hot", HOT)
        assert doors.ask("GET", "/queries/hot/sinks")[1] == {"sinks": []}
        doors.push()
        eventually(lambda: doors.service.queries.get("hot").record.next > 1)
        doors.put("other", hook(receiver, after=0))
        receiver.wait(1)
    assert len(receiver.seen) == 1


def test_a_deleted_sink_delivers_no_more(tmp_path: Path, receiver: Webhooks) -> None:
    with hot(tmp_path) as doors:
        doors.put("gone", hook(receiver, template="gone"))
        doors.put("stays", hook(receiver, template="stays"))
        assert doors.ask("DELETE", "/queries/hot/sinks/gone")[0] == 204
        assert doors.ask("DELETE", "/queries/hot/sinks/gone")[0] == 404
        doors.push(3)
        receiver.wait(3)
    assert {body for _, body in receiver.seen} == {b'"stays"'}


def test_secrets_are_not_shown_again(tmp_path: Path, receiver: Webhooks) -> None:
    with hot(tmp_path) as doors:
        made = doors.put("s", hook(receiver, secret=SECRET, headers={"Authorization": "Bearer hidden-one"}))
        shown = json.dumps([made, doors.sink("s"), doors.ask("GET", "/queries/hot/sinks")[1]])
        for secret in (SECRET, "hidden-one", "secret-path"):
            assert secret not in shown
        assert made["headers"] == {"Authorization": "***"} and made["secret"] == "***"
        status, told = doors.ask("PUT", "/queries/hot/sinks/s", hook(receiver, secret="***"))
        assert status == 400 and "give the secret itself" in told["detail"]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "kind is one of"),
        ({"kind": 1}, "kind is one of"),
        ({"kind": "webhook"}, "needs url"),
        ({"kind": "webhook", "url": "ftp://localhost/"}, "http://HOST"),
        ({"kind": "webhook", "url": "http://u:p@localhost/"}, "user in it"),
        ({"kind": "webhook", "url": "http://localhost:99999/"}, "no address"),
        ({"kind": "webhook", "url": "http://local host/"}, "space"),
        ({"kind": "webhook", "url": "http://localhost/\r\nX: y"}, "cannot be printed"),
        ({"kind": "webhook", "url": "http://localhost/", "x": 1}, "has no x"),
        ({"kind": "webhook", "url": "http://localhost/", "batch": 0}, "batch"),
        ({"kind": "webhook", "url": "http://localhost/", "batch": True}, "batch"),
        ({"kind": "webhook", "url": "http://localhost/", "timeout": 5}, "a duration has a unit"),
        ({"kind": "webhook", "url": "http://localhost/", "timeout": "1d"}, "out of range"),
        ({"kind": "webhook", "url": "http://localhost/", "headers": {"Host": "x"}}, "name of a header"),
        ({"kind": "webhook", "url": "http://localhost/", "headers": {"A": "x\r\nB: y"}}, "printable"),
        ({"kind": "webhook", "url": "http://localhost/", "secret": "whsec_?"}, "base64"),
        ({"kind": "webhook", "url": "http://localhost/", "template": "{?nobody}"}, "no variable of the query"),
        ({"kind": "webhook", "url": "http://localhost/", "template": {"{?x": 1}}, "single {"),
        ({"kind": "webhook", "url": "http://localhost/", "template": ["{secret}"]}, "known beside variables"),
        ({"kind": "webhook", "url": "http://localhost/", "template": "x" * 70_000}, "larger"),
        ({"kind": "webhook", "url": "http://localhost/", "template": ["\ud800"]}, "written as JSON"),
        ({"kind": "webhook", "url": "http://localhost/", "template": [float("nan")]}, "written as JSON"),
        ({"kind": "webhook", "url": "http://elsewhere.example/"}, "--sink-host"),
        ({"kind": "webhook", "url": "http://localhost/", "after": -1}, "id of a match"),
    ],
)
def test_what_is_wrong_is_told_at_the_door(tmp_path: Path, settings: dict[str, Any], told: str) -> None:
    with hot(tmp_path) as doors:
        status, problem = doors.ask("PUT", "/queries/hot/sinks/s", settings)
        assert status == 400 and told in problem["detail"], problem
        assert doors.ask("GET", "/queries/hot/sinks")[1] == {"sinks": []}


def test_a_template_of_many_levels_is_refused(tmp_path: Path, receiver: Webhooks) -> None:
    deep: Any = "x"
    for _ in range(60):
        deep = [deep]
    with hot(tmp_path) as doors:
        assert doors.ask("PUT", "/queries/hot/sinks/s", hook(receiver, template=deep))[0] == 400


def test_there_are_only_so_many_sinks(tmp_path: Path, receiver: Webhooks) -> None:
    with hot(tmp_path, sinks=2) as doors:
        for name in ("a", "b", "a"):
            doors.put(name, hook(receiver))
        assert doors.ask("PUT", "/queries/hot/sinks/c", hook(receiver))[0] == 403


def test_a_query_over_the_store_has_no_sinks(tmp_path: Path, receiver: Webhooks) -> None:
    with hot(tmp_path) as doors:
        doors.service.queries.register("all", "SELECT * { ?s ?p ?o }", "sparql")
        status, problem = doors.ask("PUT", "/queries/all/sinks/s", hook(receiver))
        assert status == 400 and "is a query over the store" in problem["detail"]
        assert doors.ask("PUT", "/queries/nobody/sinks/s", hook(receiver))[0] == 404


@pytest.mark.parametrize(
    ("grants", "method", "status"),
    [
        ("read:query", "PUT", 403),
        ("register:query", "PUT", 403),
        ("register:query:other read:query", "PUT", 403),
        ("register:query read:query", "PUT", 200),
        ("read:query", "GET", 200),
        ("read:query", "DELETE", 403),
        ("register:query", "DELETE", 204),
        ("read:stream", "GET", 403),
    ],
)
def test_rights(tmp_path: Path, receiver: Webhooks, grants: str, method: str, status: int) -> None:
    rights = Rights(tuple(map(grant_of, grants.split())), "somebody")
    with hot(tmp_path) as doors:
        doors.put("s", hook(receiver))
        value = hook(receiver) if method == "PUT" else None
        assert doors.ask(method, "/queries/hot/sinks/s", value, rights)[0] == status


# --- whom a sink may reach ----------------------------------------------------------------------------


def test_loopback_is_refused_when_the_name_is_resolved(
    tmp_path: Path, receiver: Webhooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = socket.getaddrinfo

    def resolved(host: str, *more: Any, **named: Any) -> Any:
        return asked("127.0.0.1" if host == "hooks.example" else host, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    with hot(tmp_path, Allowed.of(("*",))) as doors:
        given = hook(receiver)
        status, told = doors.ask("PUT", "/queries/hot/sinks/s", given)
        assert status == 400 and "--sink-network 127.0.0.0/8" in told["detail"]
        doors.put("s", {**given, "url": given["url"].replace("localhost", "hooks.example")})
        doors.push()
        eventually(lambda: doors.sink("s")["error"] is not None)
        assert "not public" in doors.sink("s")["error"]
    assert not receiver.seen and not receiver.refused


def test_a_redirect_is_not_followed(tmp_path: Path, receiver: Webhooks) -> None:
    with webhooks() as other, hot(tmp_path) as doors:
        receiver.answer = lambda headers, body: (307, {"Location": other.url})
        doors.put("s", hook(receiver))
        doors.push()
        eventually(lambda: "redirects are not followed" in (doors.sink("s")["error"] or ""))
        assert not other.seen and not other.refused


def test_a_proxy_of_the_environment_is_not_asked(
    tmp_path: Path, receiver: Webhooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    with webhooks() as proxy, hot(tmp_path) as doors:
        monkeypatch.setenv("http_proxy", f"http://localhost:{proxy.port}")
        doors.put("s", hook(receiver))
        doors.push()
        receiver.wait(1)
        assert not proxy.seen


def test_a_restart_with_a_shorter_list_holds_it_back(tmp_path: Path, receiver: Webhooks) -> None:
    with hot(tmp_path) as doors:
        doors.put("s", hook(receiver))
    with hot(tmp_path, Allowed()) as doors:
        doors.push()
        eventually(lambda: "--sink-host" in (doors.sink("s")["error"] or ""))
    assert not receiver.seen
    with hot(tmp_path, LOOPBACK):
        receiver.wait(1)


def test_a_receiver_that_answers_byte_by_byte_is_left(tmp_path: Path, receiver: Webhooks) -> None:
    with hot(tmp_path) as doors, dripping() as port:
        doors.put("s", {"kind": "webhook", "url": f"http://localhost:{port}/", "timeout": "300ms"})
        doors.push()
        eventually(lambda: doors.sink("s")["error"] is not None)
        assert "no answer in time" in doors.sink("s")["error"] or "timed out" in doors.sink("s")["error"]
