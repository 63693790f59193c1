"""One day of card payments: forty cards with habits of their own, and a few stolen ones.

Times are seconds since midnight. A customer's payments differ from each other by less than a factor of ten, so
only the planted cases can match. Amounts are decimals, which the engine compares exactly: 9.99 is no ten times
1.00, and 10.00 is.
"""

from __future__ import annotations

import random
from decimal import Decimal
from typing import NamedTuple

STREAM = "http://creditcard.org/payments"
SECOND = 1_000_000
SEED = 2
CARDS = 40
UNKNOWN = 39
"""A card whose holder is not in the knowledge base."""

PREFIXES = "@prefix pred: <http://example/> .\n@prefix : <http://example.org/> .\n"


class Payment(NamedTuple):
    """One payment."""

    second: int
    card: int
    amount: Decimal


def _payments(card: int, *cases: tuple[int, str]) -> list[Payment]:
    return [Payment(second, card, Decimal(amount)) for second, amount in cases]


PLANTED = [
    _payments(101, (30_011, "1.00"), (30_480, "250.00"), (30_941, "249.90")),
    _payments(102, (41_000, "0.50"), (42_800, "5.00")),  # exactly ten times, exactly 30 minutes later
    _payments(103, (50_003, "2.00"), (50_302, "99.00"), (50_598, "3.50"), (50_901, "480.00"), (51_207, "1200.00")),
]
"""The stolen cards; all of them try a tiny payment first. The third thief also buys a coffee in between."""

NEAR_MISSES = [
    _payments(104, (32_000, "1.00"), (32_100, "9.99")),  # not ten times
    _payments(105, (36_000, "1.00"), (37_801, "300.00")),  # one second too late
    _payments(106, (44_000, "300.00"), (44_100, "1.00")),  # small after big
    _payments(UNKNOWN, (47_000, "1.00"), (47_100, "300.00")),  # nobody knows the holder
]


def payments() -> list[Payment]:
    """All payments, by time; no two at the same second."""
    chance = random.Random(SEED)
    story = [payment for case in PLANTED + NEAR_MISSES for payment in case]
    taken = {payment.second for payment in story}
    habits = [chance.randint(10, 80) for _ in range(UNKNOWN)]
    card = 0
    for second in sorted(chance.sample([s for s in range(86_400) if s not in taken], 2_000)):
        if chance.random() < 0.9:  # else the same card again, as at a petrol station
            card = chance.randrange(UNKNOWN)
        cents = int(habits[card] * chance.uniform(60, 180))
        story.append(Payment(second, card, Decimal(cents) / 100))
    return sorted(story)


def streams() -> dict[str, list[tuple[int, str]]]:
    """The events of the stream."""
    return {STREAM: [(p.second * SECOND, _graph(p)) for p in payments()]}


def _graph(payment: Payment) -> str:
    n = payment.card
    return PREFIXES + f':card{n} pred:id :id{n} ; pred:amount {payment.amount:.2f} ; pred:loc "Lyon" .'
