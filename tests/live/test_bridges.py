"""Bridges: each message once in the stream, whatever ends and begins again; what is refused is a dead letter."""

from __future__ import annotations

import asyncio
import io
import json
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

import pytest
from hot_service import Doors, hot
from live_services import eventually

from oxiseq.bridges import Bridge, BridgeError, BridgeSettings, DeadLetters, Intake, Message, Outcome, Source, opener_of
from oxiseq.bridges.files import FollowedFile
from oxiseq.bridges.lines import Stdin
from oxiseq.bridges.mqtt import MqttSource
from oxiseq.bridges.nats import NatsSource
from oxiseq.bridges.source import SourcePosition
from oxiseq.live.api import LiveRoutes
from oxiseq.live.bridges import Bridges, Door, Inside
from oxiseq.sparql.evaluation import Evaluations
from oxiseq.sparql.messages import Request, Response
from oxiseq.sparql.settings import Limits

S = "http://example.org/brought"


def event(number: int) -> bytes:
    name = f"<http://example.org/b{number}>"
    return (
        f'{name} <http://www.w3.org/ns/prov#generatedAtTime> "2024-05-01T10:00:00.{number:06d}Z"^^'
        f"<http://www.w3.org/2001/XMLSchema#dateTime> .\n"
        f'<http://example.org/m1> <http://example.org/heat> "{number}" {name} .'
    ).encode()


@contextmanager
def bridged(doors: Doors, tmp_path: Path, **given: Any) -> Iterator[Bridges]:
    """A bridge `b` into S inside the service."""
    routes = LiveRoutes(doors.service, Evaluations(Limits()))
    doors.service.streams.create(S)
    settings = BridgeSettings.of({"into": S, **given}, tmp_path / "bridges", "b")
    made = Bridges(doors.service.journal, Door(routes.begin_push, routes.end_push), {"b": settings})
    doors.service.bridges = made
    made.start()
    try:
        yield made
    finally:
        made.stop()


def events(doors: Doors) -> int:
    return doors.service.streams.get(S).next


def counts(bridges: Bridges) -> dict[str, Any]:
    (found,) = bridges.values()
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def program(*command: str, port: int) -> Iterator[None]:
    found = shutil.which(command[0], path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
    if found is None:
        pytest.skip(f"{command[0]} is not installed")
    with subprocess.Popen([found, *command[1:]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            eventually(lambda: listens(port))
            yield
        finally:
            process.kill()


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


# --- a followed file ------------------------------------------------------------------------------------


def test_lines_of_a_file_are_followed_through_restarts_and_rotation(tmp_path: Path) -> None:
    log = tmp_path / "log.nq"
    with hot(tmp_path) as doors:
        with bridged(doors, tmp_path, url=str(log), start="all"):
            log.write_bytes(event(1) + b"\n" + event(2) + b"\n")  # it appears later
            eventually(lambda: events(doors) == 2)
        with log.open("ab") as file:  # while nobody reads
            file.write(event(3) + b"\n")
        with bridged(doors, tmp_path, url=str(log), start="all") as bridges:
            eventually(lambda: events(doors) == 3)
            log.rename(tmp_path / "log.1")
            log.write_bytes(event(4) + b"\n")
            eventually(lambda: events(doors) == 4)
            assert counts(bridges)["duplicates"] == 0


def test_a_lost_position_brings_nothing_twice(tmp_path: Path) -> None:
    log = tmp_path / "log.nq"
    log.write_bytes(b"\n".join(map(event, range(1, 6))) + b"\n")
    with hot(tmp_path) as doors:
        for _ in range(2):
            with bridged(doors, tmp_path, url=str(log), start="all") as bridges:
                eventually(lambda bridges=bridges: counts(bridges)["messages"] == 5)
                eventually((tmp_path / "bridges/b.position").exists)
            (tmp_path / "bridges/b.position").unlink()
        assert events(doors) == 5 and counts(bridges)["duplicates"] == 5
        assert b'oxiseq_bridge_messages_total{bridge="b"} 5.0' in doors.service.metrics.text()
        assert doors.ask("GET", "/bridges")[1]["bridges"][0]["into"] == S


def test_an_event_whose_lines_come_in_pieces_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oxiseq.bridges.lines.SILENCE", 600.0)  # the writer may be held up
    log = tmp_path / "log.nq"
    log.touch()
    with hot(tmp_path) as doors, bridged(doors, tmp_path, url=str(log), start="all"):
        data = event(1) + b"\n" + event(2) + b"\n" + event(3) + b"\n"  # the third says that the second is whole
        with log.open("ab", buffering=0) as file:
            for start in range(0, len(data), 50):
                file.write(data[start : start + 50])
                time.sleep(0.01)
        eventually(lambda: events(doors) == 2)


def test_what_is_refused_is_a_dead_letter_and_the_rest_goes_on(tmp_path: Path) -> None:
    log = tmp_path / "log.nq"
    log.write_bytes(event(1) + b"\nnonsense \xff\n" + event(2) + b"\n")
    with hot(tmp_path) as doors, bridged(doors, tmp_path, url=str(log), start="all") as bridges:
        eventually(lambda: events(doors) == 2)
        (letter,) = map(json.loads, (tmp_path / "bridges/b.dead.jsonl").read_text().splitlines())
        assert letter["source"] == "b" and letter["reason"] and "body_base64" in letter
        assert counts(bridges)["refused"] == 1 and counts(bridges)["state"] == "reading"


def test_rows_come_through_a_bridge_by_the_streams_mapping(tmp_path: Path) -> None:
    mapping = {
        "subject": "http://example.org/{id}",
        "predicates": {"http://example.org/heat": {"column": "heat", "datatype": "xsd:double"}},
        "time": {"expression": "?ts + ?ms / 1000"},
        "unit": "s",
    }
    log = tmp_path / "rows.jsonl"
    rows = [{"id": n, "heat": "warm" if n == 2 else n, "ts": 1714557600, "ms": n} for n in range(1, 5)]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with hot(tmp_path) as doors:
        doors.service.streams.create(S, None, json.dumps(mapping))
        for _ in range(2):  # the second time from the beginning again
            given = {"url": str(log), "media_type": "application/x-ndjson", "start": "all"}
            with bridged(doors, tmp_path, **given) as bridges:
                eventually(lambda bridges=bridges: counts(bridges)["messages"] == 4)
                eventually((tmp_path / "bridges/b.position").exists)
            (tmp_path / "bridges/b.position").unlink()
        letters = (tmp_path / "bridges/b.dead.jsonl").read_text().splitlines()
        assert {json.loads(each)["reason"] for each in letters} == {
            "no event could be read: the body holds no row that can be taken: heat: 'warm' is no xsd:double"
        }
        assert (events(doors), counts(bridges)["duplicates"]) == (3, 3)


# --- brokers ----------------------------------------------------------------------------------------------


def test_mqtt_brings_what_came_while_nobody_was_connected(tmp_path: Path) -> None:
    import paho.mqtt.publish as publish  # noqa: PLC0415  the test alone needs it

    port = free_port()
    settings = tmp_path / "mosquitto.conf"
    settings.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n")

    def send(low: int, high: int) -> None:
        several = [{"topic": f"plant/{i}", "payload": event(i), "qos": 1} for i in range(low, high)]
        publish.multiple(several, "127.0.0.1", port)

    with program("mosquitto", "-c", str(settings), port=port), hot(tmp_path) as doors:
        url = f"mqtt://127.0.0.1:{port}"
        with bridged(doors, tmp_path, url=url, topic="plant/#") as bridges:
            eventually(lambda: counts(bridges)["state"] == "reading")
            time.sleep(0.5)  # until it has subscribed
            send(1, 51)
            eventually(lambda: events(doors) == 50)
        send(51, 101)
        with bridged(doors, tmp_path, url=url, topic="plant/#") as bridges:
            eventually(lambda: events(doors) == 100)


def test_mqtt_is_tried_again_until_the_broker_is_there(tmp_path: Path) -> None:
    port = free_port()
    settings = tmp_path / "mosquitto.conf"
    settings.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n")
    url = f"mqtt://u:hidden@127.0.0.1:{port}"
    with hot(tmp_path) as doors, bridged(doors, tmp_path, url=url, topic="a") as bridges:
        eventually(lambda: counts(bridges)["state"] == "failing")
        assert "hidden" not in json.dumps(counts(bridges))
        with program("mosquitto", "-c", str(settings), port=port):
            eventually(lambda: counts(bridges)["state"] == "reading")


def test_mqtt_messages_without_a_number_are_each_one_of_their_own(tmp_path: Path) -> None:
    import paho.mqtt.publish as publish  # noqa: PLC0415  the test alone needs it

    port = free_port()
    settings = tmp_path / "mosquitto.conf"
    settings.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n")
    payload = b'<http://example.org/m1> <http://example.org/heat> "1" .'
    alike = [{"topic": "plant/1", "payload": payload, "qos": 0}] * 3
    with program("mosquitto", "-c", str(settings), port=port), hot(tmp_path) as doors:
        url = f"mqtt://127.0.0.1:{port}"
        with bridged(doors, tmp_path, url=url, topic="plant/#", media_type="text/turtle", time="arrival") as bridges:
            eventually(lambda: counts(bridges)["state"] == "reading")
            time.sleep(0.5)  # until it has subscribed
            publish.multiple(alike, "127.0.0.1", port)
            eventually(lambda: counts(bridges)["messages"] == 3)
            assert (counts(bridges)["events"], counts(bridges)["duplicates"]) == (3, 0)


def test_mqtt_numbers_that_a_broker_uses_again_are_of_new_messages(tmp_path: Path) -> None:
    import paho.mqtt.publish as publish  # noqa: PLC0415  the test alone needs it

    port = free_port()
    settings = tmp_path / "mosquitto.conf"
    settings.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n")
    payload = b'<http://example.org/m1> <http://example.org/heat> "1" .'
    url = f"mqtt://127.0.0.1:{port}"
    with (
        hot(tmp_path) as doors,
        bridged(doors, tmp_path, url=url, topic="a", media_type="text/turtle", time="arrival") as bridges,
    ):
        for run in (1, 2):  # a broker that keeps nothing begins with the same number
            with program("mosquitto", "-c", str(settings), port=port):

                def brought(run: int = run) -> bool:
                    if counts(bridges)["state"] == "reading" and counts(bridges)["messages"] < run:
                        publish.single("a", payload, 1, hostname="127.0.0.1", port=port)
                        time.sleep(0.2)
                    return bool(counts(bridges)["messages"] >= run)

                eventually(brought)
            eventually(lambda: counts(bridges)["state"] == "failing")
        told = counts(bridges)
    assert told["duplicates"] == 0 and told["events"] == told["messages"] >= 2


def test_a_message_that_is_sent_again_is_stored_once_and_a_new_one_under_its_key_too(tmp_path: Path) -> None:
    class Numbered(Source):
        """Hands out messages of one number and content: new, sent again, new, new."""

        def __init__(self) -> None:
            self.left = [["run/1"], [""], ["run/2", "run/3"]]

        def read(self, most: int, seconds: float) -> Sequence[Message]:
            if not self.left:
                raise EOFError
            return [Message(body, "mqtt/1/x", None, new_key) for new_key in self.left.pop(0)]

        def acknowledge(self, messages: Sequence[Message]) -> None: ...

        def close(self) -> None: ...

    body = event(1)
    with hot(tmp_path) as doors:
        doors.service.streams.create(S)
        routes = LiveRoutes(doors.service, Evaluations(Limits()))
        settings = BridgeSettings(url="mqtt://h", into=S, topic="a")
        inside = Inside(doors.service.journal, Door(routes.begin_push, routes.end_push), settings)
        made = Bridge("b", Numbered, inside, DeadLetters(tmp_path / "dead"))
        made.run()
        assert (made.counts.messages, made.counts.duplicates, events(doors)) == (4, 1, 3)


def test_what_is_behind_a_message_that_cannot_be_taken_yet_does_not_overtake_it(tmp_path: Path) -> None:
    with hot(tmp_path) as doors:
        doors.service.streams.create(S)
        routes, asked = LiveRoutes(doors.service, Evaluations(Limits())), list[str]()

        def begin(request: Request) -> Any:
            asked.append(request.header("idempotency-key") or "")
            return Response(503) if asked[-1] == "busy" else routes.begin_push(request)

        settings = BridgeSettings(url="mqtt://h", into=S, topic="a")
        inside = Inside(doors.service.journal, Door(begin, routes.end_push), settings)
        messages = [Message(event(number), key) for number, key in enumerate(["first", "busy", "behind"])]
        assert inside.push(messages) == [Outcome(1)]
        assert (asked, events(doors)) == (["first", "busy"], 1)
        with pytest.raises(BridgeError, match="503"):
            inside.push(messages[1:])
        assert (asked[2:], events(doors)) == (["busy"], 1)


def test_what_has_been_stored_behind_a_message_that_has_to_come_again_comes_again_with_it(tmp_path: Path) -> None:
    with hot(tmp_path) as doors:
        doors.service.streams.create(S)
        routes = LiveRoutes(doors.service, Evaluations(Limits()))

        def end(request: Request, *pushed: Any) -> Response:
            answer = routes.end_push(request, *pushed)
            return Response(503) if request.header("idempotency-key") == "unsure" else answer

        settings = BridgeSettings(url="mqtt://h", into=S, topic="a")
        inside = Inside(doors.service.journal, Door(routes.begin_push, end), settings)
        messages = [Message(event(number), key) for number, key in enumerate(["first", "unsure", "behind"])]
        assert inside.push(messages) == [Outcome(1)]
        eventually(lambda: events(doors) == 3)  # the third is not waited for


def test_mqtt_messages_that_nobody_confirms_wait_at_the_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import paho.mqtt.publish as publish  # noqa: PLC0415  the test alone needs it

    monkeypatch.setattr("oxiseq.bridges.mqtt._UNDER_WAY", 5)
    port = free_port()
    settings = tmp_path / "mosquitto.conf"
    settings.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n")
    with program("mosquitto", "-c", str(settings), port=port):
        source = MqttSource(BridgeSettings(url=f"mqtt://127.0.0.1:{port}", into=S, topic="a"))
        try:
            publish.multiple([{"topic": "a", "payload": str(i), "qos": 0} for i in range(40)], "127.0.0.1", port)
            eventually(source._came.full)
            time.sleep(0.3)
            assert source._came.qsize() == 10
            found: list[bytes] = []
            eventually(lambda: found.extend(each.body for each in source.read(3, 0.1)) or len(found) == 40)
            assert found == [str(i).encode() for i in range(40)]
            publish.multiple([{"topic": "a", "payload": "x", "qos": 0}] * 40, "127.0.0.1", port)
            eventually(source._came.full)
        finally:
            source.close()  # does not wait for a reader


@pytest.mark.parametrize(
    "url",
    [
        "redis://localhost/0?password=hidden",
        "ws://localhost/x?token=hidden",
        "mqtt://u:hidden@localhost",
        "nats://hidden@localhost",
    ],
)
def test_no_part_of_a_url_that_may_be_a_password_is_shown(url: str) -> None:
    shown = BridgeSettings(url=url, into=S).shown
    assert "hidden" not in shown and "localhost" in shown


def test_a_url_that_is_refused_is_told_without_its_password() -> None:
    settings = BridgeSettings(url="ws://u:hidden@localhost/x#part", into=S)
    with pytest.raises(BridgeError, match="localhost") as told:
        opener_of(settings)()
    assert "hidden" not in str(told.value)


def test_redis_entries_are_confirmed_once_they_are_durable(tmp_path: Path) -> None:
    import redis  # noqa: PLC0415  the test alone needs it

    port = free_port()
    command = ("redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path))
    with program(*command, port=port), hot(tmp_path) as doors, redis.Redis(port=port) as client:
        given = {"url": f"redis://127.0.0.1:{port}", "topic": "heat", "start": "all"}
        for i in range(1, 31):
            client.xadd("heat", {"body": event(i)})
        with bridged(doors, tmp_path, **given):
            eventually(lambda: events(doors) == 30)
            eventually(lambda: client.xpending("heat", "oxiseq")["pending"] == 0)
        client.xadd("heat", {"body": event(31)})
        client.xreadgroup("oxiseq", "oxiseq", {"heat": ">"})  # read and not confirmed, as by a kill
        client.xadd("heat", {"body": event(32)})
        with bridged(doors, tmp_path, **given) as bridges:
            eventually(lambda: events(doors) == 32)
            assert counts(bridges)["duplicates"] == 0


def test_nats_messages_are_acknowledged_once_they_are_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nats  # noqa: PLC0415  the test alone needs it

    port = free_port()
    url = f"nats://hidden@127.0.0.1:{port}"
    kept = str(tmp_path / "nats")
    command = ("nats-server", "-js", "-sd", kept, "-a", "127.0.0.1", "-p", str(port), "--auth", "hidden")

    monkeypatch.setattr("oxiseq.bridges.nats._IDLE", 0.0)

    async def send(low: int, high: int, *, anew: bool = False) -> int:
        """Publish; how many messages the bridge's consumers have not acknowledged yet."""
        connection = await nats.connect(url)
        streams = connection.jetstream()
        if anew:
            with suppress(nats.js.errors.NotFoundError):
                await streams.delete_stream("plant")
            await streams.add_stream(name="plant", subjects=["plant.>"])
        for i in range(low, high):
            await streams.publish(f"plant.{i}", event(i))
        waiting = [each.num_ack_pending or 0 for each in await streams.consumers_info("plant")]
        await connection.close()
        return sum(waiting)

    with program(*command, port=port), hot(tmp_path) as doors:
        given = {"url": url, "topic": "plant.*", "start": "all"}
        with bridged(doors, tmp_path, **given) as bridges:
            eventually(lambda: "no stream of JetStream keeps the subject" in str(counts(bridges)["error"]))
            assert "hidden" not in json.dumps(counts(bridges))
            asyncio.run(send(1, 31, anew=True))
            eventually(lambda: events(doors) == 30)
            eventually(lambda: asyncio.run(send(0, 0)) == 0)
        source = NatsSource(BridgeSettings(into=S, **given), SourcePosition(None))
        asyncio.run(send(31, 34))
        found: list[Message] = []
        eventually(lambda: found.extend(source.read(1, 0.1)) or len(found) == 3)
        source.acknowledge(found[:1])  # by a bridge that is killed: number 31 was not durable, but that is what it said
        for each in found[1:]:
            source._run(each.position.nak())  # else the server waits for minutes
        source.close()
        with bridged(doors, tmp_path, **given) as bridges:
            eventually(lambda: events(doors) == 32)
            asyncio.run(send(40, 41, anew=True))  # another stream of the same name counts from 1
            eventually(lambda: events(doors) == 33)
            assert (counts(bridges)["duplicates"], counts(bridges)["refused"]) == (0, 0)


def test_kafka_offsets_are_committed_once_messages_are_durable(tmp_path: Path) -> None:
    from confluent_kafka import Producer  # noqa: PLC0415  the test alone needs it

    producer = Producer({"bootstrap.servers": "unused", "test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = producer.list_topics(timeout=10).brokers.values()
    options = {"session.timeout.ms": "6000"}  # a consumer that has left keeps its place in the mock until this is over
    given = {"url": f"kafka://{broker.host}:{broker.port}", "topic": "heat", "start": "all", "options": options}
    with hot(tmp_path) as doors:
        for low, high in ((1, 21), (21, 31)):
            for i in range(low, high):
                producer.produce("heat", event(i), partition=0)
            producer.flush(10)
            with bridged(doors, tmp_path, **given) as bridges:
                eventually(lambda high=high: events(doors) == high - 1, 60)
                eventually(lambda n=high - low, bridges=bridges: counts(bridges)["messages"] == n)


def test_a_web_socket_is_connected_again(tmp_path: Path) -> None:
    from websockets.sync.server import serve  # noqa: PLC0415  the test alone needs it

    sent = iter(range(1, 100))

    def talk(connection: Any) -> None:
        assert connection.recv() == "subscribe"
        for _ in range(3):
            connection.send(event(next(sent)).decode())

    with serve(talk, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        port = server.socket.getsockname()[1]
        with hot(tmp_path) as doors, bridged(doors, tmp_path, url=f"ws://127.0.0.1:{port}", topic="subscribe"):
            eventually(lambda: events(doors) >= 6)
        server.shutdown()
        thread.join(10)


# --- the bridge itself, with a source and an intake of the test -------------------------------------------


class Listed:
    """A source that gives what is not confirmed again whenever it is opened."""

    def __init__(self, left: list[Message]) -> None:
        self._left, self._next = left, 0

    def read(self, most: int, seconds: float) -> Sequence[Message]:
        if not self._left:
            raise EOFError
        found = self._left[self._next : self._next + 3]
        self._next += len(found)
        return found

    def acknowledge(self, messages: Sequence[Message]) -> None:
        assert list(messages) == self._left[: len(messages)]
        del self._left[: len(messages)]
        self._next -= len(messages)

    def close(self) -> None:
        """Nothing is open."""


class Moody:
    """An intake that is busy every second time, and takes two messages at most."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self._asked = 0

    def push(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        self._asked += 1
        if self._asked % 2:
            raise BridgeError("busy")
        self.taken += [message.key for message in messages[:2]]
        return [Outcome(events=1) for _ in messages[:2]]


def test_an_intake_that_is_busy_holds_the_source_back_and_the_order_stays(tmp_path: Path) -> None:
    left = [Message(b"", f"k{i}") for i in range(10)]
    intake = Moody()
    bridge = Bridge("b", lambda: Listed(left), intake, DeadLetters(tmp_path / "dead"), (0.001, 0.002))
    bridge.run()
    assert intake.taken == [f"k{i}" for i in range(10)] and not left
    assert bridge.counts.messages == bridge.counts.events == 10 and bridge.counts.failing is None


def test_a_full_file_of_dead_letters_stops_the_source(tmp_path: Path) -> None:
    left = [Message(b"x" * 100, f"k{i}") for i in range(10)]

    class Refusing:
        def push(self, messages: Sequence[Message]) -> Sequence[Outcome]:
            return [Outcome(refused="no") for _ in messages]

    letters = DeadLetters(tmp_path / "dead", 600)
    bridge = Bridge("b", lambda: Listed(left), Refusing(), letters, (0.001, 0.002))
    thread = threading.Thread(target=bridge.run)
    thread.start()
    eventually(lambda: "which is the limit" in bridge.counts.error)
    bridge.stop()
    thread.join(10)
    assert (tmp_path / "dead").stat().st_size <= 600
    assert len(left) + len((tmp_path / "dead").read_text().splitlines()) == 10


def test_a_message_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oxiseq.bridges.lines._LONGEST", 1000)
    log = tmp_path / "log"
    log.write_bytes(b"x" * 5000)
    source = FollowedFile(BridgeSettings(url=str(log), into=S, start="all"))
    with pytest.raises(BridgeError, match="more than 1000"):
        source.read(10, 1)
    source.close()


def test_stdin_that_cannot_be_read_is_an_error_and_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, letters = BridgeSettings(url="-", into=S), DeadLetters(tmp_path / "dead")
    with open(tmp_path / "written", "wb") as file:
        source = Stdin(settings, cast(BinaryIO, file))
        bridge = Bridge("b", lambda: source, cast(Intake, None), letters, (0.001, 0.001))
        bridge.run()
    assert bridge.counts.failures == 1 and "stdin cannot be read: Bad file" in bridge.counts.error
    for closed, told in ((None, "it is closed"), (io.TextIOWrapper(io.BytesIO()), "stdin cannot be read")):
        monkeypatch.setattr("sys.stdin", closed)
        with pytest.raises(BridgeError, match=told):
            opener_of(settings)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"url": "-"}, "no stdin"),
        ({"url": "ftp://x"}, "not known"),
        ({}, "needs url"),
        ({"url": "a", "x": 1}, "has no x"),
        ({"url": "a", "start": "now"}, "new or all"),
        ({"url": "a", "topic": 3}, "topic is a text"),
    ],
)
def test_what_is_wrong_is_told_at_the_start(tmp_path: Path, given: dict[str, Any], told: str) -> None:
    with pytest.raises(BridgeError, match=told):
        opener_of(BridgeSettings.of({"into": S, **given}, tmp_path, "b"))
