"""Random numbers that a replay draws again: from a seed, and nothing else (semantics.md 2.6b)."""

from __future__ import annotations

import hashlib


def sample(count: int, wanted: int, seed: str) -> list[int]:
    """So many different numbers below `count` in ascending order, each set of them as likely as any other; all numbers
    if there are not more (Floyd: Bentley, Programming Pearls: A Sample of Brilliance, CACM 1987)."""
    if wanted >= count:
        return list(range(count))
    chosen: set[int] = set()
    for draw, j in enumerate(range(count - wanted, count)):
        number = _below(j + 1, f"{draw} {seed}")
        chosen.add(number if number not in chosen else j)
    return sorted(chosen)


def share_of(count: int, others: int, wanted: int, seed: str) -> int:
    """How many of `wanted` different ones drawn from `count` and `others` together are of the `count`."""
    share = 0
    for draw in range(wanted):
        if _below(count + others, f"{draw} {seed}") < count:
            share, count = share + 1, count - 1
        else:
            others -= 1
    return share


def _below(bound: int, seed: str) -> int:
    """A number below `bound`: a hash 64 bits longer than it, so that no number is likelier than another by more than
    one part in 2^64."""
    digest = hashlib.shake_256(seed.encode()).digest(bound.bit_length() // 8 + 9)
    return int.from_bytes(digest, "little") % bound
