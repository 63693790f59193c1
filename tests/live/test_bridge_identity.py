"""What identifies a message of a bridge: none is lost and none is stored twice, with several servers and topics, files
that are rotated and cut off, streams that are deleted and made again, kills, and what earlier versions stored."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hot_service import Doors, hot
from live_services import eventually
from test_bridges import S, bridged, counts, event, events, free_port, program

from oxiseq.bridges import BridgeSettings, Message, Source, opener_of
from oxiseq.bridges.bridge import key_headers
from oxiseq.bridges.files import FollowedFile
from oxiseq.bridges.mqtt import MqttSource
from oxiseq.bridges.nats import NatsSource
from oxiseq.bridges.source import SourcePosition, digest
from oxiseq.live.api import LiveRoutes
from oxiseq.rights import EVERYTHING
from oxiseq.sparql.evaluation import Evaluations
from oxiseq.sparql.messages import Request
from oxiseq.sparql.settings import Limits

ALIKE = b'<http://example.org/m1> <http://example.org/heat> "1" .'
"""An event without a time, as a heartbeat is: many messages have this body."""
GRAPHS = {"media_type": "text/turtle", "time": "arrival"}


def lines(low: int, high: int) -> bytes:
    return b"".join(event(i) + b"\n" for i in range(low, high))


def push(doors: Doors, key: str, body: bytes, former: str = "") -> bool:
    """Push as a bridge does; whether it was known."""
    routes = LiveRoutes(doors.service, Evaluations(Limits()))
    headers = (("content-type", "application/n-quads"), *key_headers(Message(body, key, former_key=former)))
    answer = routes.answer(Request("POST", f"/streams/{quote(S, safe='')}", "", headers, body, rights=EVERYTHING))
    assert answer.status == 200 and isinstance(answer.body, bytes)
    return bool(json.loads(answer.body)["duplicates"])


def read_all(source: Source, count: int, *, confirm: bool = True) -> list[Message]:
    """So many messages."""
    found: list[Message] = []

    def more() -> bool:
        came = source.read(500, 0.05)
        if confirm and came:
            source.acknowledge(came)
        found.extend(came)
        return len(found) >= count

    eventually(more)
    return found


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oxiseq.bridges.lines.SILENCE", 0.1)


# --- files ----------------------------------------------------------------------------------------------


def followed(log: Path, position: SourcePosition, **given: Any) -> FollowedFile:
    return FollowedFile(BridgeSettings(url=str(log), into=S, **{"start": "all", **given}), position)


def bodies(messages: Sequence[Message]) -> list[bytes]:
    return [each.body for each in messages]


def test_a_file_that_is_cut_off_in_place_is_read_again_from_its_beginning(tmp_path: Path) -> None:
    log = tmp_path / "log.nq"
    log.write_bytes(lines(100, 130))
    with hot(tmp_path) as doors, bridged(doors, tmp_path, url=str(log), start="all") as bridges:
        eventually(lambda: events(doors) == 30)
        log.write_bytes(lines(200, 235))  # longer than what was read, before the bridge looks
        eventually(lambda: events(doors) == 65)
        assert (counts(bridges)["duplicates"], counts(bridges)["refused"]) == (0, 0)


def test_lines_that_are_alike_are_messages_of_their_own_in_each_life_of_a_file(tmp_path: Path) -> None:
    log = tmp_path / "log.ttl"
    log.write_bytes((ALIKE + b"\n") * 5)
    with hot(tmp_path) as doors, bridged(doors, tmp_path, url=str(log), start="all", **GRAPHS) as bridges:
        for round_ in range(1, 4):
            eventually(lambda n=5 * round_: events(doors) == n)
            log.write_bytes(ALIKE + b"\n")
            eventually(lambda n=5 * round_ + 1: events(doors) == n)
            with log.open("ab") as file:
                file.write((ALIKE + b"\n") * 4)
        eventually(lambda: events(doors) == 20)
        assert counts(bridges)["duplicates"] == 0


def test_a_file_that_was_rotated_while_nobody_read_is_read_to_its_end_and_those_after_it(tmp_path: Path) -> None:
    log = tmp_path / "log.nq"
    log.write_bytes(lines(1, 4))
    position = tmp_path / "position"
    source = followed(log, SourcePosition(position))
    assert len(read_all(source, 3)) == 3
    source.close()
    with log.open("ab") as file:
        file.write(lines(4, 6))
    for number, (low, high) in enumerate(((6, 9), (9, 12), (12, 14))):
        for old in range(number, 0, -1):
            (tmp_path / f"log.nq.{old}").rename(tmp_path / f"log.nq.{old + 1}")
        log.rename(tmp_path / "log.nq.1")
        time.sleep(0.01)
        log.write_bytes(lines(low, high))
    (tmp_path / "log.nq.bak").write_bytes(lines(90, 99))  # nothing that logrotate has named
    source = followed(log, SourcePosition(position))
    assert bodies(read_all(source, 10)) == [event(i) for i in range(4, 14)]
    source.close()
    source = followed(log, SourcePosition(position))
    assert not source.read(10, 0.3)
    source.close()


def test_a_file_that_was_copied_and_cut_off_while_nobody_read_is_read_from_the_copy(tmp_path: Path) -> None:
    log, position = tmp_path / "log.nq", tmp_path / "position"
    log.write_bytes(lines(1, 4))
    source = followed(log, SourcePosition(position))
    read_all(source, 3)
    source.close()
    with log.open("ab") as file:
        file.write(lines(4, 6))
    shutil.copy(log, tmp_path / "log.nq-20240501")
    log.write_bytes(lines(6, 20))
    source = followed(log, SourcePosition(position))
    found = read_all(source, 16)
    assert bodies(found) == [event(i) for i in range(4, 20)] and len({each.key for each in found}) == 16
    source.close()


def test_what_a_new_bridge_finds_at_its_start_is_where_it_begins_after_a_kill_too(tmp_path: Path) -> None:
    log, position = tmp_path / "log.nq", tmp_path / "position"
    log.write_bytes(lines(1, 4))
    source = followed(log, SourcePosition(position), start="new")
    assert not source.read(10, 0.2)
    source.close()  # nothing was confirmed
    with log.open("ab") as file:
        file.write(lines(4, 6))
    source = followed(log, SourcePosition(position), start="new")
    assert bodies(read_all(source, 2)) == [event(4), event(5)]
    source.close()


def test_keys_are_the_same_for_what_was_not_confirmed(tmp_path: Path) -> None:
    log, position = tmp_path / "log.nq", tmp_path / "position"
    log.write_bytes((event(1) + b"\n") * 2 + lines(2, 4))
    source = followed(log, SourcePosition(position))
    read_all(source, 3)
    log.write_bytes(event(1) + b"\n" + lines(7, 9))
    found = read_all(source, 3, confirm=False)
    source.close()
    source = followed(log, SourcePosition(position))
    assert [each.key for each in read_all(source, 3)] == [each.key for each in found]
    source.close()


def test_a_position_of_an_earlier_version_goes_on_and_its_keys_are_known(tmp_path: Path) -> None:
    log, position = tmp_path / "log.nq", tmp_path / "bridges" / "b.position"
    log.write_bytes(lines(1, 6))
    inode, ends = log.stat().st_ino, [len(lines(1, n + 1)) for n in range(1, 6)]
    position.parent.mkdir()
    position.write_text(json.dumps([inode, ends[1]]))
    with hot(tmp_path) as doors:
        doors.service.streams.create(S)
        name = digest(bytes(log))
        for number, end in enumerate(ends[:4], 1):  # two of them were stored and not confirmed: it was killed
            push(doors, f"file/{name}/{inode}/{end}", event(number))
        with bridged(doors, tmp_path, url=str(log)) as bridges:
            eventually(lambda: counts(bridges)["messages"] == 3)
            assert (events(doors), counts(bridges)["duplicates"]) == (5, 2)


# --- Redis --------------------------------------------------------------------------------------------------


@contextmanager
def redis_server(tmp_path: Path) -> Iterator[tuple[str, Any]]:
    import redis  # noqa: PLC0415  the tests of Redis alone need it

    port = free_port()
    command = ("redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path))
    with program(*command, port=port), redis.Redis(port=port) as client:
        yield f"redis://127.0.0.1:{port}", client


def test_redis_entries_of_several_topics_databases_and_lives_are_each_stored(tmp_path: Path) -> None:
    with redis_server(tmp_path) as (url, client), hot(tmp_path) as doors:
        stored = 0
        for database in (0, 1):
            client.select(database)
            for topic in ("heat", "wind"):
                for number in range(1, 6):
                    client.xadd(topic, {"body": ALIKE}, id=f"{number}-1")
        given = {"start": "all", **GRAPHS}
        for path, topic in (("/0", "heat"), ("/0", "wind"), ("/1", "heat"), ("/1", "wind")):
            shutil.rmtree(tmp_path / "bridges", ignore_errors=True)
            with bridged(doors, tmp_path, url=url + path, topic=topic, **given) as bridges:
                stored += 5
                eventually(lambda bridges=bridges: counts(bridges)["messages"] == 5)
                assert (events(doors), counts(bridges)["duplicates"], counts(bridges)["refused"]) == (stored, 0, 0)


def test_a_redis_stream_that_is_made_again_is_read_from_its_beginning(tmp_path: Path) -> None:
    with redis_server(tmp_path) as (url, client), hot(tmp_path) as doors:
        client.xadd("heat", {"body": event(1)}, id="9-1")  # before the bridge: not wanted
        with bridged(doors, tmp_path, url=url, topic="heat") as bridges:
            eventually(lambda: client.exists("heat") and client.xinfo_groups("heat"))
            client.xadd("heat", {"body": event(2)}, id="10-1")
            eventually(lambda: events(doors) == 1)
        client.delete("heat")
        for number in (3, 4):
            client.xadd("heat", {"body": event(number)})
        with bridged(doors, tmp_path, url=url, topic="heat") as bridges:
            eventually(lambda: events(doors) == 3)
            client.delete("heat")  # while it reads
            for number in (5, 6):
                client.xadd("heat", {"body": event(number)}, id=f"{2 * number}-1")  # smaller ids, one of them known
            eventually(lambda: events(doors) == 5)
            client.xgroup_destroy("heat", "oxiseq")  # the group alone: nothing is new
            client.xadd("heat", {"body": event(7)})
            eventually(lambda: events(doors) == 6)
            assert (counts(bridges)["duplicates"], counts(bridges)["refused"]) == (0, 0)


def test_redis_entries_that_an_earlier_version_stored_and_did_not_confirm_are_known(tmp_path: Path) -> None:
    with redis_server(tmp_path) as (url, client), hot(tmp_path) as doors:
        doors.service.streams.create(S)
        client.xgroup_create("heat", "oxiseq", "0", mkstream=True)
        ids = [client.xadd("heat", {"body": event(number)}).decode() for number in (1, 2, 3)]
        client.xreadgroup("oxiseq", "oxiseq", {"heat": ">"}, count=2)
        push(doors, f"redis/{ids[0]}", event(1))
        push(doors, f"redis/{ids[1]}", event(9))  # of another topic
        with bridged(doors, tmp_path, url=url, topic="heat") as bridges:
            eventually(lambda: counts(bridges)["messages"] == 3)
            assert (events(doors), counts(bridges)["duplicates"], counts(bridges)["refused"]) == (4, 1, 0)


# --- Kafka ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_kafka_clusters_number_their_messages_alike(tmp_path: Path) -> None:
    from confluent_kafka import Producer  # noqa: PLC0415  the tests of Kafka alone need it

    producers = [Producer({"bootstrap.servers": "unused", "test.mock.num.brokers": 1, "log_level": 0}) for _ in "ab"]
    with hot(tmp_path) as doors:
        for number, producer in enumerate(producers, 1):
            (broker,) = producer.list_topics(timeout=10).brokers.values()
            for _ in range(5):
                producer.produce("heat", ALIKE, partition=0, timestamp=1_714_557_600_000)
            producer.flush(10)
            url = f"kafka://{broker.host}:{broker.port}"
            with bridged(doors, tmp_path, url=url, topic="heat", start="all", **GRAPHS) as bridges:
                eventually(lambda bridges=bridges: counts(bridges)["messages"] == 5, 60)
                assert (events(doors), counts(bridges)["duplicates"]) == (5 * number, 0)


@pytest.mark.slow
def test_a_kafka_group_that_began_with_new_messages_loses_none_before_its_first(tmp_path: Path) -> None:
    from confluent_kafka import Producer  # noqa: PLC0415  the tests of Kafka alone need it

    producer = Producer({"bootstrap.servers": "unused", "test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = producer.list_topics(timeout=10).brokers.values()
    given = {"url": f"kafka://{broker.host}:{broker.port}", "topic": "heat", "position": tmp_path / "position"}
    producer.produce("heat", event(1), partition=0)
    producer.flush(10)
    opened = opener_of(BridgeSettings(into=S, options={"session.timeout.ms": "6000"}, **given))
    source = opened()
    eventually(lambda: not source.read(10, 0.1) and (tmp_path / "position").exists(), 30)
    source.close()  # nothing has come
    for number in (2, 3):
        producer.produce("heat", event(number), partition=0)
    producer.flush(10)
    source = opener_of(BridgeSettings(into=S, options={"session.timeout.ms": "6000"}, **given))()
    found: list[Message] = []
    eventually(lambda: found.extend(source.read(10, 0.1)) or len(found) == 2, 30)
    source.close()
    assert bodies(found) == [event(2), event(3)] and found[0].former_key == "kafka/heat/0/1"


# --- MQTT -------------------------------------------------------------------------------------------------------


def test_mqtt_retained_messages_come_once_and_keys_say_the_session(tmp_path: Path) -> None:
    import paho.mqtt.publish as publish  # noqa: PLC0415  the test alone needs it

    port = free_port()
    settings = tmp_path / "mosquitto.conf"
    settings.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n")

    def opened(group: str) -> MqttSource:
        return MqttSource(BridgeSettings(url=f"mqtt://127.0.0.1:{port}", into=S, topic="plant/#", group=group))

    with program("mosquitto", "-c", str(settings), port=port):
        publish.single("plant/1", ALIKE, 1, retain=True, hostname="127.0.0.1", port=port)
        keys = []
        for group in ("a", "b"):
            source = opened(group)
            (message,) = read_all(source, 1)
            keys.append(message.key)
            source.close()
            source = opened(group)
            publish.single("plant/2", b"new", 1, hostname="127.0.0.1", port=port)
            assert bodies(read_all(source, 1)) == [b"new"] and not source.read(10, 0.2)
            source.close()
        assert len(set(keys)) == 2


# --- NATS -------------------------------------------------------------------------------------------------------


@contextmanager
def nats_server(tmp_path: Path) -> Iterator[str]:
    port = free_port()
    command = ("nats-server", "-js", "-sd", str(tmp_path / "nats"), "-a", "127.0.0.1", "-p", str(port))
    with program(*command, port=port):
        yield f"nats://127.0.0.1:{port}"


async def nats_publish(url: str, low: int, high: int, *, anew: bool = False, forget: str = "") -> None:
    import nats  # noqa: PLC0415  the tests of NATS alone need it

    connection = await nats.connect(url)
    streams = connection.jetstream()
    if anew:
        if any(each.config.name == "plant" for each in await streams.streams_info()):
            await streams.delete_stream("plant")
        await streams.add_stream(name="plant", subjects=["plant.>"])
    if forget:
        await streams.delete_consumer("plant", forget)
    for number in range(low, high):
        await streams.publish("plant.a", event(number))
    await connection.close()


def killed(source: NatsSource) -> None:
    """As by a kill: the server hears nothing."""
    source._held.clear()
    source.close()


def test_nats_messages_of_a_killed_bridge_come_again_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oxiseq.bridges.nats._ACK_WAIT", 1.0)
    with nats_server(tmp_path) as url:
        asyncio.run(nats_publish(url, 1, 41, anew=True))
        settings = BridgeSettings(url=url, into=S, topic="plant.*", start="all")
        for _ in range(3):  # each kill leaves messages that are not confirmed
            source = NatsSource(settings, SourcePosition(None))
            assert bodies(read_all(source, 20, confirm=False))[:20] == [event(i) for i in range(1, 21)]
            killed(source)
        asyncio.run(nats_publish(url, 41, 51))
        source = NatsSource(settings, SourcePosition(None))
        found = read_all(source, 50, confirm=False)
        assert bodies(found) == [event(i) for i in range(1, 51)]
        time.sleep(1.6)  # the intake is busy for longer than the server waits
        assert not source.read(10, 0.1)
        source.acknowledge(found[:30])
        source.close()
        begun = time.monotonic()
        source = NatsSource(settings, SourcePosition(None))
        assert bodies(read_all(source, 20)) == [event(i) for i in range(31, 51)]
        assert time.monotonic() - begun < 0.9  # what was closed in order gives them back at once
        source.close()


def test_a_nats_consumer_that_is_gone_begins_where_the_bridge_was(tmp_path: Path) -> None:
    with nats_server(tmp_path) as url:
        asyncio.run(nats_publish(url, 1, 4, anew=True))
        position = tmp_path / "position"
        settings = BridgeSettings(url=url, into=S, topic="plant.*")
        source = NatsSource(settings, SourcePosition(position))
        asyncio.run(nats_publish(url, 4, 6))
        assert bodies(read_all(source, 2)) == [event(4), event(5)]
        source.close()
        group = f"oxiseq-{digest('plant.*', size=6)}"
        asyncio.run(nats_publish(url, 6, 8, forget=group))
        source = NatsSource(settings, SourcePosition(position))
        assert bodies(read_all(source, 2)) == [event(6), event(7)]
        source.close()
        asyncio.run(nats_publish(url, 8, 10, anew=True))
        source = NatsSource(settings, SourcePosition(position))
        assert bodies(read_all(source, 2)) == [event(8), event(9)]
        source.close()


@pytest.mark.parametrize("earlier", [True, False])
def test_a_nats_consumer_of_an_earlier_version_is_waited_for_as_those_of_this_one(
    tmp_path: Path, earlier: bool
) -> None:
    import nats  # noqa: PLC0415  the tests of NATS alone need it

    async def consumer(url: str, *, make: bool) -> Any:
        connection = await nats.connect(url)
        streams, group = connection.jetstream(), f"oxiseq-{digest('plant.*', size=6)}"
        if make:
            config = nats.js.api.ConsumerConfig(
                deliver_policy=nats.js.api.DeliverPolicy.NEW,
                ack_policy=nats.js.api.AckPolicy.EXPLICIT,
                ack_wait=300.0,
                max_ack_pending=500,
            )
            await streams.pull_subscribe("plant.*", durable=group, stream="plant", config=config)
        info = await streams.consumer_info("plant", group)
        await connection.close()
        return info

    with nats_server(tmp_path) as url:
        asyncio.run(nats_publish(url, 1, 3, anew=True))
        if earlier:
            asyncio.run(consumer(url, make=True))
            asyncio.run(nats_publish(url, 3, 5))
        source = NatsSource(BridgeSettings(url=url, into=S, topic="plant.*"), SourcePosition(None))
        if not earlier:
            asyncio.run(nats_publish(url, 3, 5))
        assert bodies(read_all(source, 2)) == [event(3), event(4)]
        source.close()
        config = asyncio.run(consumer(url, make=False)).config
        assert (config.ack_wait, config.max_ack_pending) == (30, 1000)  # two bridges' worth: one may have been killed


def test_a_former_key_is_that_of_the_same_body_alone(tmp_path: Path) -> None:
    with hot(tmp_path) as doors:
        doors.service.streams.create(S)
        assert not push(doors, "old", event(1))
        assert push(doors, "new/1", event(1), "old")
        assert not push(doors, "new/2", event(2), "old")
        assert push(doors, "new/2", event(2), "old")
        assert events(doors) == 2
