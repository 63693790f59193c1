"""What is kept of a query's newest matches, for subscribers behind it."""

from __future__ import annotations

from oxiseq.journal import Found
from oxiseq.live.topics import Topic


def test_matches_that_are_no_longer_kept_are_not_at_hand() -> None:
    topic = Topic(0, recent=2, on_change=lambda topic: None)
    assert topic.at_hand(0) == 0
    for first in (1, 2, 3, 4):
        topic.publish(Found("rises", first, b""), 1)
    assert [topic.at_hand(cursor) for cursor in range(5)] == [None, 3, 2, 1, 0]
    begun = Topic(4, recent=2, on_change=lambda topic: None)
    assert [begun.at_hand(cursor) for cursor in (3, 4)] == [None, 0]
