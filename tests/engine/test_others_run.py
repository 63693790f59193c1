"""Whatever a kernel is at work on for long, other threads run meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from itertools import pairwise

import pytest

import oxiseq

E, S = "http://e/", "http://e/s"
XSD = "http://www.w3.org/2001/XMLSchema#"
PAIRS = "FILTER(?a + ?b = -1)"
HEAD = f"PREFIX : <{E}> SELECT ?b FROM STREAM S <{S}> WHERE {{"
WINDOW = f"PREFIX : <{E}> REGISTER ISTREAM :found AS SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON <{S}> [RANGE PT2H]"


def several(name: str, count: int) -> str:
    return "".join(f'<{E}{n}> <{E}{name}> "{n}"^^<{XSD}integer> .\n' for n in range(count))


def one_by_one(count: int) -> Iterable[str]:
    return (f'<{E}{n}> <{E}v> "{n}"^^<{XSD}integer> .' for n in range(count))


CASES: dict[str, tuple[str, str, Callable[[int], Iterable[str]], int]] = {
    "a pattern on one event": (
        "spaseq",
        f"{HEAD} SEQ(A) DEFINE GPM A ON S {{ ?x :v ?a . ?y :v ?b {PAIRS} }} }}",
        lambda size: [several("v", size)],
        4_000,
    ),
    "partial matches": (
        "spaseq",
        f"{HEAD} SEQ(A; B) DEFINE GPM A ON S {{ ?x :a ?a }} DEFINE GPM B ON S {{ ?y :v ?b {PAIRS} }} }}",
        lambda size: [several("a", size), several("v", size)],
        3_000,
    ),
    "a join in a window": (
        "rspql",
        f"{WINDOW} WHERE {{ WINDOW :w {{ ?x :v ?a . ?y :v ?b FILTER(?a + ?b = -1) }} }}",
        one_by_one,
        3_000,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_longest_silence_is_a_small_part_of_a_long_run(case: str) -> None:
    language, query, events, size = CASES[case]
    silence = whole = 0.0
    for count in (20, size):  # the first compiles
        given = [(1_000_000 * at, graph) for at, graph in enumerate(events(count))]
        silence, whole = longest_silence(lambda given=given: list(oxiseq.run(query, {S: given}, language=language)))
    assert silence < whole / 4, (silence, whole)


def longest_silence(work: Callable[[], object]) -> tuple[float, float]:
    """For how long another thread did not run while this one works, and how long it works, in seconds."""
    times, ended = [time.perf_counter()], threading.Event()

    def other() -> None:
        while not ended.wait(0.0005):
            times.append(time.perf_counter())

    thread = threading.Thread(target=other)
    thread.start()
    begun = time.perf_counter()
    try:
        work()
    finally:
        ended.set()
        thread.join()
    times.append(time.perf_counter())
    return max(later - earlier for earlier, later in pairwise(times)), times[-1] - begun
