"""Sinks to brokers and by mail, with real receivers: Mosquitto, librdkafka's mock cluster, an SMTP server."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import EmailMessage, Message
from email.policy import default as policy
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
import pytest
from aiosmtpd.controller import Controller
from confluent_kafka import Consumer, Producer
from hot_service import LOOPBACK, hot
from live_services import eventually

from oxiseq.sinks import Allowed, SinkError, settings_of

needs_mosquitto = pytest.mark.skipif(
    shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin") is None, reason="mosquitto is not installed"
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Mosquitto:
    """A broker that can be ended and begun again at its port."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._settings = folder / "mosquitto.conf"
        self._settings.write_text(f"listener {self.port} 127.0.0.1\nallow_anonymous true\n")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        program = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin")
        assert program is not None
        self._process = subprocess.Popen([program, "-c", str(self._settings)], stderr=subprocess.DEVNULL)
        eventually(self._listens)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()

    def _listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True


@contextmanager
def listening(broker: Mosquitto, topic: str) -> Iterator[list[tuple[str, Any]]]:
    """What comes for a topic."""
    seen: list[tuple[str, Any]] = []
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
    ready: list[bool] = []
    client.on_message = lambda _, __, message: seen.append((message.topic, json.loads(message.payload)))
    client.on_subscribe = lambda *_: ready.append(True)
    client.connect("127.0.0.1", broker.port)
    client.subscribe(topic, 1)
    client.loop_start()
    eventually(lambda: bool(ready))
    try:
        yield seen
    finally:
        client.disconnect()
        client.loop_stop()


@needs_mosquitto
def test_mqtt_gets_a_message_for_each_match(tmp_path: Path) -> None:
    broker = Mosquitto(tmp_path)
    broker.start()
    try:
        with hot(tmp_path) as doors, listening(broker, "alerts/#") as seen:
            doors.put(
                "m",
                {
                    "kind": "mqtt",
                    "host": "localhost",
                    "port": broker.port,
                    "topic": "alerts/{?note}/{?heat}",
                    "template": ["{id}", "{?heat}"],
                },
            )
            doors.push(150, note="a/b+#")
            eventually(lambda: len(seen) >= 150)
            assert seen == [(f"alerts/a_b__/{i}", [i, i]) for i in range(1, 151)]
            eventually(lambda: doors.sink("m")["delivered"] == 150)
    finally:
        broker.stop()


@needs_mosquitto
def test_mqtt_goes_on_when_the_broker_is_back(tmp_path: Path) -> None:
    broker = Mosquitto(tmp_path)
    with hot(tmp_path) as doors:
        doors.put("m", {"kind": "mqtt", "host": "localhost", "port": broker.port, "topic": "t", "template": "{id}"})
        doors.push(3)
        eventually(lambda: "no connection" in (doors.sink("m")["error"] or ""))
        broker.start()
        try:
            with listening(broker, "t") as seen:
                doors.push(3)
                eventually(lambda: doors.sink("m")["delivered"] == 6)
                eventually(lambda: ("t", 6) in seen)
                broker.stop()
                doors.push()
                eventually(lambda: doors.sink("m")["error"] is not None)
                broker.start()
                eventually(lambda: doors.sink("m")["delivered"] == 7)
        finally:
            broker.stop()


@contextmanager
def kafka() -> Iterator[str]:
    """The address of librdkafka's mock cluster, which lives in this process."""
    cluster = Producer({"bootstrap.servers": "unused", "test.mock.num.brokers": 1, "log_level": 0})
    metadata = cluster.list_topics(timeout=10)
    (broker,) = metadata.brokers.values()
    yield f"{broker.host}:{broker.port}"
    del cluster


def test_kafka_gets_a_message_for_each_match(tmp_path: Path) -> None:
    with kafka() as address, hot(tmp_path, Allowed.of(["127.0.0.1", "localhost"], ["127.0.0.0/8"])) as doors:
        doors.put(
            "k",
            {
                "kind": "kafka",
                "brokers": [address],
                "topic": "alerts",
                "template": {"heat": "{?heat}"},
                "key": "{?machine}",
            },
        )
        doors.push(50)
        eventually(lambda: doors.sink("k")["delivered"] == 50)
        consumer = Consumer({"bootstrap.servers": address, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["alerts"])
        messages, deadline = [], time.monotonic() + 30
        while len(messages) < 50 and time.monotonic() < deadline:
            found = consumer.poll(1)
            if found is not None and not found.error():
                messages.append(found)
        consumer.close()
    assert sorted(json.loads(each.value())["heat"] for each in messages) == list(range(1, 51))
    assert {each.key() for each in messages} == {b"http://example.org/m1"}
    assert dict(messages[0].headers())["idempotency-key"].startswith(b"hot/")


def test_kafka_that_is_away_fails_that_sink_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oxiseq.sinks.mqtt._TIMEOUT", 2.0)
    with hot(tmp_path, Allowed.of(["localhost"], ["127.0.0.0/8", "::1/128"], tmp_path)) as doors:
        doors.put("k", {"kind": "kafka", "brokers": [f"localhost:{free_port()}"], "topic": "t"})
        doors.put("f", {"kind": "file", "path": "a"})
        doors.push()
        eventually(lambda: doors.sink("f")["delivered"] == 1)
        eventually(lambda: doors.sink("k")["error"] is not None, 60)


class Box:
    """Takes mail; refuses while `refuses`."""

    def __init__(self) -> None:
        self.mails: list[Message] = []
        self.refuses = False
        self.unknown = ""

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
        if address == self.unknown:
            return "550 nobody of this name"
        envelope.rcpt_tos.append(address)
        return "250 taken"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if self.refuses:
            return "451 try again later"
        self.mails.append(message_from_bytes(envelope.content, policy=policy))
        return "250 taken"


@contextmanager
def smtp() -> Iterator[tuple[Box, int]]:
    box = Box()
    controller = Controller(box, "127.0.0.1", free_port())
    controller.start()
    try:
        yield box, controller.port
    finally:
        controller.stop()


def test_mail_gathers_matches_and_comes_again_until_it_is_taken(tmp_path: Path) -> None:
    with smtp() as (box, port), hot(tmp_path) as doors:
        box.refuses = True
        doors.put(
            "mail",
            {
                "kind": "mail",
                "host": "localhost",
                "port": port,
                "tls": "none",
                "sender": "alerts@example.org",
                "to": ["ann@example.org", "bob@example.org"],
                "subject": "Hot: {?note}",
                "body": "{?machine} has {?heat}°",
                "every": "100ms",
            },
        )
        doors.push(3, note="a\r\nBcc: eve@example.org")
        eventually(lambda: "451" in (doors.sink("mail")["error"] or ""))
        box.refuses = False
        eventually(lambda: doors.sink("mail")["delivered"] == 3)
    (mail,) = box.mails
    assert mail["Subject"] == "Hot: a Bcc: eve@example.org (and 2 more)"
    assert mail["To"] == "ann@example.org, bob@example.org" and mail["Bcc"] is None
    assert mail["Message-ID"] == "<hot.1-3@oxiseq.example.org>" and mail["X-Oxiseq-Key"] == "hot/1-3"
    said = mail.get_content()
    assert [line for line in said.splitlines() if line] == [f"http://example.org/m1 has {i}°" for i in (1, 2, 3)]


def test_mail_that_one_recipient_is_refused_reaches_nobody_until_all_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    made = EmailMessage()
    made.set_content("hot")
    monkeypatch.setattr("oxiseq.sinks.mail._message", lambda *_: made)
    delivery: Any = None
    with smtp() as (box, port):
        receiver = settings_of(
            {
                "kind": "mail",
                "host": "localhost",
                "port": port,
                "tls": "none",
                "sender": "alerts@example.org",
                "to": ["ann@example.org", "bob@example.org"],
            }
        ).open(LOOPBACK, "")
        box.unknown = "bob@example.org"
        for _ in range(3):
            with pytest.raises(SinkError, match="does not take mail for bob"):
                receiver.deliver(delivery)
        assert not box.mails
        box.unknown = ""
        receiver.deliver(delivery)
    assert len(box.mails) == 1


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"kind": "mqtt", "host": "localhost"}, "needs topic"),
        ({"kind": "mqtt", "host": "elsewhere.example", "topic": "t"}, "--sink-host"),
        ({"kind": "mqtt", "host": "localhost", "topic": "t/{?nobody}"}, "no variable"),
        ({"kind": "mqtt", "host": "localhost", "topic": "t", "qos": 0}, "from 1 to 2"),
        ({"kind": "mqtt", "host": "localhost", "topic": "t", "port": 0}, "port is"),
        ({"kind": "kafka", "brokers": [], "topic": "t"}, "brokers is a list"),
        ({"kind": "kafka", "brokers": ["a,b"], "topic": "t"}, "no broker"),
        ({"kind": "kafka", "brokers": ["localhost"], "topic": "t", "options": {"ssl.ca.location": "/x"}}, "not ssl"),
        (
            {"kind": "kafka", "brokers": ["localhost"], "topic": "t", "options": {"sasl.mechanism": "GSSAPI"}},
            "of PLAIN",
        ),
        ({"kind": "kafka", "brokers": ["b"], "topic": "t", "options": {"security.protocol": "SASL_SSL"}}, "needs sasl"),
        ({"kind": "mail", "host": "localhost", "sender": "a@b.c", "to": "a@b.c", "body": "\ud800"}, "written as JSON"),
        ({"kind": "kafka", "brokers": ["elsewhere.example"], "topic": "t"}, "by its name"),
        ({"kind": "mail", "host": "localhost", "sender": "a@b.c", "to": "not an address"}, "no address of mail"),
        ({"kind": "mail", "host": "localhost", "sender": "a@b.c\r\nX: y", "to": "a@b.c"}, "cannot be printed"),
        (
            {"kind": "mail", "host": "localhost", "sender": "a@b.c", "to": "a@b.c", "tls": "none", "password": "x"},
            "tls or",
        ),
    ],
)
def test_what_is_refused(tmp_path: Path, settings: dict[str, Any], told: str) -> None:
    with hot(tmp_path, LOOPBACK) as doors:
        status, problem = doors.ask("PUT", "/queries/hot/sinks/s", settings)
        assert status == 400 and told in problem["detail"], problem


def test_passwords_are_not_shown_again(tmp_path: Path) -> None:
    with hot(tmp_path, LOOPBACK) as doors:
        shown = [
            doors.put("m", {"kind": "mqtt", "host": "localhost", "topic": "t", "user": "u", "password": "hidden1"}),
            doors.put(
                "k",
                {
                    "kind": "kafka",
                    "brokers": ["localhost"],
                    "topic": "t",
                    "options": {"sasl.username": "u", "sasl.password": "hidden2"},
                },
            ),
            doors.put(
                "s",
                {
                    "kind": "mail",
                    "host": "localhost",
                    "sender": "a@b.c",
                    "to": "a@b.c",
                    "user": "u",
                    "password": "hidden3",
                },
            ),
        ]
    assert "hidden" not in json.dumps(shown) and json.dumps(shown).count("***") == 3
