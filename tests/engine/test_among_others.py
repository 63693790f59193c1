"""No query harms another: each finds what it finds alone, whatever else is registered, comes and goes.

Up to fifty SPAseq queries of one store: random ones, and relatives of each other (the same under another name, with
variables or GPMs named otherwise, with other thresholds, windows and answers). What is compared, and how, is in
among_others.py. A failure is made small and printed as a script.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

import pytest
from among_others import (
    Close,
    Forget,
    Look,
    Player,
    Punctuate,
    Push,
    Register,
    Remove,
    Restart,
    Settle,
    Situation,
    Step,
    Tag,
    difference,
    reduced,
)
from engine_runs import E, query
from hypothesis import Phase, given
from hypothesis import strategies as st
from profiles import drawn
from strategies import SMALL, Dice, graph, knowledge, n_triples_term, situation
from test_ranking_differential import ranked
from test_shared_runs import KEYED, WINDOWS, alike, of_endings, of_thresholds, of_windows, random_query
from test_summaries_differential import summarised

from oxiseq.grammar.checks import load
from oxiseq.grammar.errors import QueryError

WITHOUT_SHRINKING = [Phase.explicit, Phase.reuse, Phase.generate]  # `reduced` does it, and better
STREAMS = (E + "s1", E + "s1", E + "s1", E + "s2", E + "s3")


# --- queries --------------------------------------------------------------------------------------


def anything(dice: Random) -> list[str]:
    """A query with all that the language has; it may rank or sum up its matches."""
    found = situation(Dice(dice.randrange(2**62)), clauses=dice.random() < 0.6, trailing=dice.random() < 0.2)
    change = dice.choice([None, None, ranked, summarised])
    changed = None if change is None else change(found, dice.randrange(2**30))
    return [(found if changed is None else changed).text]


def exploding(dice: Random) -> list[str]:
    """One that has too many matches at an instant, mappings on an event, or rows of an operator."""
    window = dice.choice(["", "WITHIN PT0.00003S SLIDING", "WITHIN 20 EVENTS"])
    crossed = "?x1 ?p ?x2 . ?x3 ?q ?x4 . ?x5 ?r ?x6 ."
    return [
        dice.choice(
            [
                query("A : B:+ : C", window),
                query("A ; B+ ; C", window),
                query("B+", window),
                query("A; B; C+", window, dice.choice(["SELECT NEXT *", "SELECT MAX *", "SELECT LAST *"])),
                query("A; B", window, A=crossed),
                query("A & B", window, A="?x1 ?p ?x2 .", B="?x3 ?q ?x4 ."),
                query("B+; N!", window or WINDOWS[1], N=KEYED),
            ]
        )
    ]


def groups(dice: Random) -> list[str]:
    """Some that belong together, or one."""
    ways: list[Callable[[Random], list[str]]] = [alike, of_windows, of_thresholds, anything, anything, anything]
    ways += [lambda dice: [random_query(dice)], lambda dice: [of_endings(dice)], exploding]
    return dice.choice(ways)(dice)


def related(dice: Random, text: str) -> str:
    """The query again, the same or with a change that leaves its meaning, or nearly."""
    changed = dice.choice([_itself, _itself, _other_variables, _other_gpms, _other_thresholds, _other_window])(
        dice, text
    )
    try:
        load(changed)
    except QueryError:
        return text
    return changed


def _itself(dice: Random, text: str) -> str:
    return text


def _other_variables(dice: Random, text: str) -> str:
    """Variables have other names, whose order is another one, too."""
    names = sorted(set(re.findall(r"\?(\w+)", text)))
    others = dict(zip(names, (f"x{n}" for n in dice.sample(range(90), len(names))), strict=True))
    return re.sub(r"\?(\w+)", lambda found: f"?{others[found[1]]}", text)


def _other_gpms(dice: Random, text: str) -> str:
    names = sorted(set(re.findall(r"DEFINE GPM (\w)\b", text)))
    others = dict(zip(names, dice.sample([*"PQRTUVWXYZ"], len(names)), strict=True))
    return re.sub(rf"(?<![\w?:\"])({'|'.join(names)})(?!\w)", lambda found: others[found[1]], text)


def _other_thresholds(dice: Random, text: str) -> str:
    return re.sub(r"([<>=] )\d+(?=\b(?!\.))", lambda found: f"{found[1]}{dice.randint(1, 20)}", text)


def _other_window(dice: Random, text: str) -> str:
    text = re.sub(r"WITHIN PT0\.0000\d+S", f"WITHIN PT0.0000{dice.choice([2, 5, 9, 15, 30]):02}S", text, count=1)
    return re.sub(r"WITHIN \d+ EVENTS", f"WITHIN {dice.choice([1, 2, 3, 5, 9])} EVENTS", text, count=1)


# --- situations -------------------------------------------------------------------------------------


class Drawing:
    """Steps, one after the other."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.steps = list[Step]()
        self.texts: dict[str, str] = {}
        """By name those that are registered."""
        self.known = list[str]()
        """All that have been."""
        self.now, self.count, self.tagged = 0, 0, 0
        self.kinds = "abcn"
        self.streams = self.dice.choice([(E + "s1",), (E + "s1",), STREAMS])
        self.values = self.dice.choice([3, 20])

    def situation(self) -> Situation:
        dice = self.dice
        most = dice.choice([2, 3, 4, 6, 8, 8, 12, 16, 25, 50])
        while len(self.texts) < most * dice.choice([0.5, 0.8, 1]):
            self.register(most)
        for _ in range(dice.choice([10, 20, 30])):
            self.step(most)
        return Situation(
            tuple(self.steps),
            knowledge(Dice(dice.randrange(2**62))),
            matches=dice.choice([500, 500, 500, 60, 8]),
            made=dice.choice([1 << 14, 1 << 14, 50]),
            rows=dice.choice([10_000, 10_000, 60, 12]),
        )

    def step(self, most: int) -> None:
        dice = self.dice
        way = dice.choice("p" * 24 + "^" * 3 + "l" * 3 + "r" * 3 + "k" + "m" + "sfcx" * 2)
        if way == "p":
            self.push()
        elif way == "^":
            self.steps.append(Punctuate(dice.choice(self.streams), self.now + dice.randint(-2, 3)))
        elif way == "l":
            self.steps.append(Look())
        elif way == "r":
            self.register(most)
        elif way == "k":
            self.tagged += 1
            value = n_triples_term(dice.choice(SMALL))
            thing = f"<{E}{dice.choice(['t1', 't2'])}>" if dice.random() < 0.5 else f"<{E}tag{self.tagged}>"
            where = dice.choice([f"<{E}tag> {value} <{E}tags>", f"<{E}limit> {value} <{E}g>"])
            self.steps.append(Tag(f"{thing} {where} ."))
        elif way == "m":
            self.steps.append(Restart(dice.randrange(2**30)))
        elif self.texts:
            name = dice.choice([*self.texts])
            kind = {"s": Settle, "f": Forget, "c": Close, "x": Remove}[way]
            self.steps.append(kind(name))
            if kind in (Close, Remove):
                del self.texts[name]

    def register(self, most: int) -> None:
        """Some come at once: lateness and start are theirs in common, or they would have little to share."""
        dice = self.dice
        if self.known and dice.random() < 0.5:
            texts = [related(dice, dice.choice(self.known)) for _ in range(dice.choice([1, 1, 2, 5]))]
        else:
            texts = groups(dice)
        lateness = dice.choice([0, 0, 0, 0, 2, 4])
        start = dice.choice([None, None, None, None, self.now + 3])
        bound = dice.choice([None, None, None, 4, 12])
        for text in texts[: max(most - len(self.texts), 0)]:
            self.count += 1
            name = f"q{self.count}"
            self.steps.append(Register(name, text, lateness, start, bound))
            self.texts[name] = text
            self.known.append(text)

    def push(self) -> None:
        dice = self.dice
        if dice.random() < 0.2:
            self.kinds = dice.choice(["a", "ab", "abc", "abcn", "abcn", "abhn", "i", "abhin", "b", "bc"])
        stream = dice.choice(self.streams)
        self.steps.append(Push(stream, tuple(self.event() for _ in range(dice.choice([1, 1, 1, 2, 5, 12])))))

    def event(self) -> tuple[int, str]:
        dice = self.dice
        self.now += dice.choice([0, 1, 1, 1, 2, 7])
        time = max(self.now - dice.choice([0, 0, 0, 0, 0, 1, 3, 6]), 0)
        if dice.random() < 0.3:
            return time, graph(Dice(dice.randrange(2**62)), SMALL)
        kind, key, value = dice.choice(self.kinds), dice.randint(1, 3), dice.randint(1, self.values)
        thing = dice.choice([f"<{E}{kind}{time}-{key}-{value}>", f"<{E}t{key}>", "_:b"])
        numbers = [(name, n_triples_term(str(number))) for name, number in (("k", key), ("v", value))]
        return time, "".join(f"{thing} <{E}{p}> {o} .\n" for p, o in [("kind", f"<{E}{kind}>"), *numbers])


def fail_small(found: Situation) -> None:
    if difference(found) is not None:
        small = reduced(found)
        print(small.script())
        pytest.fail(str(difference(small)))


@drawn(50, phases=WITHOUT_SHRINKING)
@given(st.integers(0, 2**62))
@pytest.mark.slow
def test_each_query_finds_what_it_finds_alone(seed: int) -> None:
    fail_small(Drawing(seed).situation())


def test_situations_have_something_to_compare() -> None:
    """Matches, late events, errors and states that become too large; or the test above would say nothing."""
    seen = []
    for seed in range(8):
        player = Player(Drawing(seed).situation())
        assert player.play() is None
        seen.append(player.seen)
    assert sum(each.matches for each in seen) > 200
    assert all(sum(getattr(each, what) for each in seen) for what in ("late", "errors", "forgotten"))
