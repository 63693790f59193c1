"""The sender writes what comes to those who listen, and lets the others be."""

from __future__ import annotations

import threading

import pytest
from live_services import eventually

from oxiseq.live.sending import HEARTBEAT, Sender
from oxiseq.live.topics import Topic


class Client:
    """An outlet in memory."""

    def __init__(self) -> None:
        self.open = True
        self.pending = 0
        self.got: list[bytes] = []

    def write(self, data: bytes) -> bool:
        if self.open:
            self.got.append(data)
        return self.open


class Numbers:
    """A subscription: what is given to it comes once; `None` ends it."""

    def __init__(self, topic: Topic) -> None:
        self.topic, self.ended, self.behind, self.more = topic, False, False, False
        self.given: list[bytes | Exception | None] = []

    def take(self, timeout: float) -> bytes:
        assert timeout == 0
        given, self.given = self.given, []
        data = b""
        for each in given:
            if isinstance(each, Exception):
                raise each
            self.ended |= each is None
            data += each or b""
        return data


class Sending:
    """One reader of a sender, on a thread of its own as in the server."""

    def __init__(self, sender: Sender, topic: Topic) -> None:
        self.numbers, self.client = Numbers(topic), Client()
        self.error: Exception | None = None
        self.thread = threading.Thread(target=self._run, args=(sender,))
        self.thread.start()

    def _run(self, sender: Sender) -> None:
        try:
            sender.send(self.numbers, self.client)
        except RuntimeError as error:
            self.error = error

    def gone(self) -> bool:
        return not self.thread.is_alive()


def give(sender: Sender, reader: Sending, what: bytes | Exception | None) -> None:
    reader.numbers.given.append(what)
    sender.changed(reader.numbers.topic)


@pytest.fixture
def topic() -> Topic:
    return Topic(0, 10, lambda topic: None)


def test_each_gets_its_own_until_it_ends(topic: Topic) -> None:
    sender = Sender(60)
    other = Topic(0, 10, lambda topic: None)
    readers = [Sending(sender, topic), Sending(sender, topic), Sending(sender, other)]
    for number, reader in enumerate(readers):
        give(sender, reader, b"%d" % number)
    eventually(lambda: [reader.client.got for reader in readers] == [[b"0"], [b"1"], [b"2"]])
    give(sender, readers[1], None)
    eventually(readers[1].gone)
    give(sender, readers[0], b"more")
    eventually(lambda: readers[0].client.got == [b"0", b"more"])
    sender.close()
    eventually(lambda: all(reader.gone() for reader in readers))


def test_who_takes_nothing_waits_and_holds_nobody_up(topic: Topic) -> None:
    sender = Sender(60)
    slow, quick = Sending(sender, topic), Sending(sender, topic)
    slow.client.pending = 1 << 30
    for reader in (slow, quick):
        give(sender, reader, b"x")
    eventually(lambda: quick.client.got == [b"x"])
    assert slow.client.got == []
    slow.client.pending = 0  # nothing else happens: the sender comes back by itself
    eventually(lambda: slow.client.got == [b"x"])
    sender.close()


def test_silence_is_told_and_who_has_left_is_noticed(topic: Topic) -> None:
    sender = Sender(0.05)
    reader = Sending(sender, topic)
    eventually(lambda: HEARTBEAT in reader.client.got)
    reader.client.open = False
    eventually(reader.gone)
    sender.close()


def test_a_failure_ends_only_its_own_reader(topic: Topic) -> None:
    sender = Sender(60)
    bad, good = Sending(sender, topic), Sending(sender, topic)
    give(sender, bad, RuntimeError("unreadable"))
    eventually(bad.gone)
    assert str(bad.error) == "unreadable"
    give(sender, good, b"x")
    eventually(lambda: good.client.got == [b"x"])
    sender.close()
    late = Sending(sender, topic)  # nothing is sent any more
    late.thread.join(5)
    assert late.gone()
