"""Sums and averages made a batch at a time: the same terms, with the same columns, as totals make one by one."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np

import oxiseq
from oxiseq.engine import kinds
from oxiseq.engine.expressions.exact import ExpressionError
from oxiseq.engine.expressions.totals import KINDS, SumTotal
from oxiseq.engine.matches.measures import Sums
from oxiseq.engine.output.sums import sum_ids
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.value import term_value

E = "http://e/"
XSD = "http://www.w3.org/2001/XMLSchema#"
DENOMINATORS = (1, 10, 1000, 10**18, 10**20, 2**62, 2**62 * 10**3, 2**1116)
COUNT = 40


def made(dice: random.Random, *, average: bool) -> Sums:
    unit = dice.choice(DENOMINATORS)
    kind = np.array([dice.choice(KINDS) for _ in range(COUNT)])
    exact = (kind == kinds.INTEGER) | (kind == kinds.DECIMAL)
    special = np.array([dice.choice((0.0,) * 12 + (math.nan, math.inf, -math.inf)) for _ in range(COUNT)])
    events = [dice.choice((1, 2, 3, dice.randint(1, 1000), dice.randint(1, 2**70))) for _ in range(COUNT)]
    totals = [dice.randint(-1, 1) * dice.choice((1, unit)) * dice.randint(0, 10 ** dice.randint(1, 40)) for _ in kind]
    whole = (kind == kinds.INTEGER) | exact & (unit % 2**62 == 0)
    totals = [total - total % unit if is_whole else total for total, is_whole in zip(totals, whole, strict=True)]
    failed = np.array([dice.random() < 0.05 for _ in kind])
    none = [is_exact and dice.random() < 0.05 for is_exact in kind == kinds.INTEGER]
    events = [0 if empty else count for empty, count in zip(none, events, strict=True)] if average else [1] * COUNT
    totals = [0 if average and empty else total for empty, total in zip(none, totals, strict=True)]
    return Sums(kind, failed, np.where(exact, 0.0, special), events, totals, unit)


def test_they_are_the_totals() -> None:
    terms, dice = TermDictionary(), random.Random(1)
    for _ in range(20):
        for average in (True, False):
            sums = made(dice, average=average)
            for i, found in enumerate(sum_ids(average, sums, terms).tolist()):
                special = float(sums.special[i])
                total = SumTotal(average, terms)
                total.put(
                    Fraction(sums.numerators[i], sums.denominator),
                    {int(sums.kind[i]): sums.events[i]},
                    () if special == 0.0 else (0.0,) if math.isnan(special) else (special,),
                    failed=bool(sums.failed[i]),
                )
                try:
                    expected = total.term()
                except ExpressionError:
                    assert found == 0
                    continue
                columns = terms.columns
                assert terms.term(found) == expected
                has = columns.kind[found], columns.number[found], columns.exact[found], columns.quality[found]
                assert np.array_equal(has, term_value(expected), equal_nan=True)


def test_sums_of_floats_are_rounded_once() -> None:
    """Matches have no order; one by one in xsd:float, 2^24 + 1 + 1 is 2^24."""
    events = [
        (second, f'<{E}e{second}> <{E}v> "{value}"^^<{XSD}{kind}> .')
        for second, (value, kind) in enumerate([("16777216", "integer"), ("1", "float"), ("1", "float")])
    ]
    text = f"""PREFIX : <{E}> SELECT (SUM(?v) AS ?s) (AVG(?v) AS ?mean) FROM STREAM S <{E}s>
      WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?a :v ?v }} }}"""
    *_, row = oxiseq.run(text, {f"{E}s": events})
    assert [float(row[name].value) for name in ("s", "mean")] == [16777218, 5592406]
