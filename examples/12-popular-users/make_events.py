"""Three hours of a small social network: posts, likes of posts, and who begins to follow whom."""

from __future__ import annotations

import random
from typing import NamedTuple

SOCIAL = "http://example.org/social#"
POSTS, LIKES, FOLLOWS = (f"http://example.org/{name}" for name in ("posts", "likes", "follows"))
PEOPLE = 12
NAMED = 8
"""How many the knowledge base has names for."""
SECOND = 1_000_000
HOUR = 3_600 * SECOND
SEED = 12


class Fact(NamedTuple):
    """One event: at `time` the stream has `subject predicate object`."""

    time: int
    subject: str
    object: str


def facts() -> dict[str, list[Fact]]:
    """All events by stream, in order of time; the first people are liked by fortune."""
    chance = random.Random(SEED)
    found: dict[str, list[Fact]] = {POSTS: [], LIKES: [], FOLLOWS: []}
    for minute in range(180):
        time = (60 * minute + chance.randrange(60)) * SECOND
        person = f"user{chance.randrange(PEOPLE)}"
        kind = chance.choice([POSTS, LIKES, LIKES, FOLLOWS, FOLLOWS])
        if kind == POSTS:
            target = f"post{minute}"
        elif kind == LIKES and found[POSTS]:
            target = chance.choice(found[POSTS][-12:]).object
        else:
            kind, target = FOLLOWS, f"user{min(chance.randrange(PEOPLE) for _ in range(3))}"
        found[kind].append(Fact(time, person, target))
    return found


def streams() -> dict[str, list[tuple[int, str]]]:
    """The events as graphs."""
    return {
        iri: [
            (f.time, f"<{SOCIAL}{f.subject}> <{SOCIAL}{iri.rsplit('/', 1)[-1]}> <{SOCIAL}{f.object}> .") for f in each
        ]
        for iri, each in facts().items()
    }


def kb() -> str:
    """Names, in N-Quads."""
    graph = "<http://example.org/people>"
    return "".join(f'<{SOCIAL}user{i}> <{SOCIAL}name> "User {i}" {graph} .\n' for i in range(NAMED))
