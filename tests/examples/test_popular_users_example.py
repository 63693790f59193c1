"""The example of RSEP-QL answers what a plain loop over its events does."""

from __future__ import annotations

from example_loading import load

HOUR = 3_600_000_000


def test_answers_are_those_of_a_plain_loop() -> None:
    events = load("12-popular-users", "make_events")
    facts = events.facts()
    posts, likes, follows = facts[events.POSTS], facts[events.LIKES], facts[events.FOLLOWS]
    before: set[tuple[int, int, str, str, int]] = set()
    expected = []
    for now in sorted({f.time for each in facts.values() for f in each}):

        def within(time: int, now: int = now) -> bool:
            return now - HOUR < time <= now

        fans: dict[str, set[str]] = {}
        for fact in follows:
            if within(fact.time):
                fans.setdefault(fact.object, set()).add(fact.subject)
        answers = {
            (post.time, like.time, post.object, f"User {like.subject.removeprefix('user')}", len(fans[like.subject]))
            for post in posts
            for like in likes
            if within(post.time) and within(like.time) and post.time < like.time and post.object == like.object
            if len(fans.get(like.subject, ())) >= 3 and int(like.subject.removeprefix("user")) < events.NAMED
        }
        expected += sorted(answers - before)
        before = answers
    assert len(expected) > 20
    assert sorted(load("12-popular-users").main()) == sorted(expected)
