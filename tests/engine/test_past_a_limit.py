"""What ends at an instant where there is too much to choose from is not told; all the rest is."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import oxiseq
from oxiseq.engine.errors import LimitError
from oxiseq.engine.matches.choice import Chooser
from oxiseq.engine.output.folding import MatchFolder
from oxiseq.engine.output.picking import MatchPicker
from oxiseq.engine.output.sieve import MatchSieve

E = "http://e/"
TEXT = f"""PREFIX : <{E}> SELECT {{}} WITHIN 8 SECONDS SLIDING FROM STREAM S :s WHERE {{{{ SEQ(A:+ ; B)
DEFINE GPM A ON S {{{{ ?x :v ?v }}}} DEFINE GPM B ON S {{{{ ?x :w ?w }}}} }}}} {{}}"""
FOLDED = TEXT.format("MAX (SUM(SUM(?v)) AS ?s) (COUNT(*) AS ?n)", "GROUP BY (ENDTIME() AS ?end)")
FILTERED = (
    TEXT.format("NEXT ?v ?w", "")
    .replace("B) ", "B) FILTER(SUM(?v) != 3) ")
    .replace("B)\n", "B) FILTER(SUM(?v) != 3)\n")
)
CASES: dict[str, tuple[str, type, str]] = {
    "MAX": (TEXT.format("MAX ?v ?w", ""), Chooser, "choose"),
    "SAMPLE": (TEXT.format("?v ?w", "SAMPLE 3 SEED 1"), MatchPicker, "pick"),
    "FILTER": (FILTERED, MatchSieve, "pick"),
    "folded": (FOLDED, MatchFolder, "pick"),
}


def events(seed: int) -> Iterator[tuple[int, str]]:
    dice, time = random.Random(seed), 0
    for _ in range(30):
        time += dice.choice([1, 1, 1, 2, 6])
        yield time * 1_000_000, f"<{E}a> <{E}{dice.choice('vvw')}> {time} ."


def told(text: str, queries: int, seed: int, size: int) -> tuple[list[list[tuple[int, str]]], int]:
    """What each of equal queries finds, and how often a limit was raised; so many events are pushed at a time."""
    store, errors = oxiseq.Store(), 0
    registered = [store.register(text) for _ in range(queries)]
    every = [*events(seed), (99_000_000, f"<{E}a> <{E}other> 0 .")]
    for low in range(0, len(every), size):
        try:
            store.stream(E + "s").extend(every[low : low + size])
        except LimitError:
            errors += 1
    return [[(match.at_us, str(match)) for match in query.matches()] for query in registered], errors


@pytest.mark.parametrize("queries", [1, 2])
@pytest.mark.parametrize("size", [1, 4, 100])
@pytest.mark.parametrize("case", CASES)
def test_only_what_ends_there_is_missing(monkeypatch: pytest.MonkeyPatch, case: str, size: int, queries: int) -> None:
    text, kind, method = CASES[case]
    for seed in range(3):
        (every,), _ = told(text, 1, seed, 1)
        usual, calls = getattr(kind, method), [0]

        def fails(self: Any, *given: Any, usual: Any = usual, calls: list[int] = calls) -> Any:
            calls[0] += 1
            if calls[0] % 5 == 3:
                raise LimitError(2, 1, "matches")
            return usual(self, *given)

        with monkeypatch.context() as patch:
            patch.setattr(kind, method, fails)
            found, errors = told(text, queries, seed, size)
        assert errors
        for each in found:
            left = {at for at, _ in each}
            missing = {at for at, _ in every} - left
            assert each == [match for match in every if match[0] in left]
            assert len(missing) <= calls[0] // 5 + 1
