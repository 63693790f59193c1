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
from oxiseq.engine.matches.measures import Measure, Measures, Sums, new_form
from oxiseq.engine.output.small_sums import small_sums
from oxiseq.engine.output.sums import number_ids, sum_ids
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import parse_term
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


KINDS_OF_VALUES = {
    "integer": ("1", "-7", f"{2**62}", f"{10**30}"),
    "decimal": ("1.5", "-0.25", "1.0", "0.000000000000000001"),
    "double": ("1.5E0", "-0.1E0", "1.0E16", "-1.0E16", "-0.0E0", "3.0E-5", "4.9E-324", "1.7E308", "NaN"),
    "float": ("0.1",),
    "string": ("text",),
}
VALUES = {kind: [f'"{v}"^^<{XSD}{kind}>' for v in values] for kind, values in KINDS_OF_VALUES.items()}


def test_those_of_usual_sizes_are_what_the_others_are() -> None:
    """Weights of some values each, some of them many times, as columns and one by one."""
    terms, dice, usual = TermDictionary(), random.Random(1), 0
    for _ in range(60):
        every = [value for values in VALUES.values() for value in values]
        whole, doubles = VALUES["integer"][:2], VALUES["double"]
        few = dice.choice((whole, whole + VALUES["decimal"], doubles[:5], doubles[:6], doubles, every))
        measures = Measures([Measure.of(0, ("SUM", "AVG"))], terms)
        ids = np.array([[terms.intern(parse_term(value))] for value in few])
        values, flags = measures.of(ids)
        form = new_form(dice.choice((2, 4)), measures)
        limbs, lines = int(form[0]), []
        for _ in range(30):
            times = [dice.choice((0, 1, 1, 3, dice.randint(0, 10 ** dice.randint(1, 12)))) for _ in few]
            there = [i for i, each in enumerate(times) if each]
            numbers = [
                sum(times),
                *(sum(t * int(v) for t, v in zip(times, column, strict=True)) for column in values.T),
            ]
            flag = np.bitwise_or.reduce(flags[there], initial=np.uint64(1))
            words = b"".join(number.to_bytes(8 * limbs, "little", signed=True) for number in numbers)
            lines.append(np.concatenate([[flag], np.frombuffer(words, np.uint64)]))
        weights = np.array(lines, np.uint64)
        for name in ("SUM", "AVG"):
            small = small_sums(name, 0, weights, form, measures)
            found = number_ids((small.kind, small.numbers, small.high, small.low), terms)
            expected = sum_ids(name == "AVG", measures.summed(name, 0, weights, form), terms)
            assert found[small.made].tolist() == expected[small.made].tolist()
            usual += int((small.made & (small.kind > 0)).sum())
    assert usual > 500


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
