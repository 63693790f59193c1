"""What breaks each template, said plainly over the activities of one finished case.

Each function takes the activities in order and gives the places (first, last) of every violation that the query tells:
A is "A", B is "B", the last one of a case is "End".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

Places = Iterator[tuple[int, int]]
Trace = Sequence[str]


def _where(trace: Trace, *names: str) -> list[int]:
    return [i for i, name in enumerate(trace) if name in names]


def _missing(*names: str) -> Callable[[Trace], Places]:
    def broken(trace: Trace) -> Places:
        if not _where(trace, *names):
            yield len(trace) - 1, len(trace) - 1

    return broken


def absence(trace: Trace, times: int = 1) -> Places:
    found = _where(trace, "A")
    for n in range(len(found) - times + 1):
        yield found[n], found[n + times - 1]


def init(trace: Trace) -> Places:
    if trace[0] != "A":
        yield 0, 0


def responded_existence(trace: Trace) -> Places:
    if "B" not in trace:
        yield from ((i, len(trace) - 1) for i in _where(trace, "A"))


def co_existence(trace: Trace) -> Places:
    if ("A" in trace) != ("B" in trace):
        yield _where(trace, "A", "B")[0], len(trace) - 1


def response(trace: Trace) -> Places:
    yield from ((i, len(trace) - 1) for i in _where(trace, "A") if "B" not in trace[i + 1 :])


def precedence(trace: Trace) -> Places:
    yield from ((i, i) for i in _where(trace, "B") if "A" not in trace[:i])


def alternate_response(trace: Trace) -> Places:
    for i in _where(trace, "A"):
        until = next(j for j in range(i + 1, len(trace)) if trace[j] in ("A", "End"))
        if "B" not in trace[i + 1 : until]:
            yield i, until


def _pairs(broken: Callable[[str, str], bool]) -> Callable[[Trace], Places]:
    return lambda trace: ((i, i + 1) for i in range(len(trace) - 1) if broken(trace[i], trace[i + 1]))


def not_co_existence(trace: Trace) -> Places:
    for one, other in (("A", "B"), ("B", "A")):
        yield from ((i, i + 1 + trace[i + 1 :].index(other)) for i in _where(trace, one) if other in trace[i + 1 :])


def not_succession(trace: Trace) -> Places:
    yield from ((i, i + 1 + trace[i + 1 :].index("B")) for i in _where(trace, "A") if "B" in trace[i + 1 :])


BROKEN: dict[str, Callable[[Trace], Places]] = {
    "existence": _missing("A"),
    "absence": absence,
    "init": init,
    "choice": _missing("A", "B"),
    "responded-existence": responded_existence,
    "co-existence": co_existence,
    "response": response,
    "precedence": precedence,
    "alternate-response": alternate_response,
    "chain-response": _pairs(lambda one, two: one == "A" and two != "B"),
    "chain-precedence": _pairs(lambda one, two: one != "A" and two == "B"),
    "chain-succession": _pairs(lambda one, two: (one == "A") != (two == "B")),
    "not-co-existence": not_co_existence,
    "not-succession": not_succession,
    "not-chain-succession": _pairs(lambda one, two: one == "A" and two == "B"),
}
