"""Aggregates over iterations as columns, beside each match's own."""

from __future__ import annotations

import gc
from itertools import pairwise

import numpy as np
import pytest
from engine_runs import Driven, Reading, query
from loaded import load
from pyoxigraph import Literal, NamedNode, Variable
from strategies import Dice

import oxiseq
from oxiseq.engine.expressions.aggregate import aggregate
from oxiseq.engine.expressions.exact import ExpressionError
from oxiseq.engine.output.parts import MatchRows, PartColumns
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.scope import match_parts

XSD = "http://www.w3.org/2001/XMLSchema#"
V = Variable("bv")
NAMES = ("SUM(?bv)", "AVG(?bv)", "MIN(?bv)", "MAX(?bv)", "COUNT(?bv)", "COUNT(DISTINCT ?bv)", "SUM(DISTINCT ?bv)")
KINDS = {
    "small": [("integer", str(n)) for n in range(-3, 4)],
    "large": [("integer", str(n)) for n in (2**62, 2**63 - 1, -(2**63), 1, -1)],
    "types": [("integer", "1"), ("byte", "2"), ("decimal", "0.5"), ("double", "1.0E0"), ("string", "x")],
    "unbound": [("integer", "1"), ("integer", "2"), None],
}


@pytest.mark.parametrize("kind", KINDS)
def test_aggregates_of_all_matches_are_those_of_each(kind: str) -> None:
    dice, terms = Dice(len(kind)), TermDictionary()
    columns = " ".join(f"({name} AS ?x{i})" for i, name in enumerate(NAMES))
    plan = compile_query(load(query("A : B:+ : C", "", f"SELECT {columns}")), terms)
    written = plan.runner.written
    parts = [part for column in written.columns for part in match_parts(column.expression)]
    named = [letter.letter for letter in plan.letters]
    b = next(i for i, letter in enumerate(named) if "B" in letter)
    other = next(i for i, letter in enumerate(named) if "B" not in letter)
    values = [
        0 if each is None else terms.intern(Literal(each[1], datatype=NamedNode(XSD + each[0]))) for each in KINDS[kind]
    ]
    letter, held, ends = [], [], [0]
    for _ in range(200):
        for _ in range(dice.between(1, 6)):
            letter.append(b if dice.chance(70) else other)
            held.append(dice.pick(values))
        ends.append(len(letter))
    matches = MatchRows(
        np.zeros((200, 1), np.uint32),
        np.array(held, np.uint32)[:, None],
        np.array(ends, np.int64),
        np.array(letter, np.int32),
        np.arange(len(letter)),
        np.array(ends[1:], np.int64) - 1,
    )
    made = PartColumns(plan, {V: 0}, terms)
    for part in parts:
        assert V in written.iterations[part].variables
        found = made.of(part, matches).tolist()
        for m, (low, high) in enumerate(pairwise(ends)):
            rows = [held[i] for i in range(low, high) if letter[i] == b]
            try:
                expected = aggregate(part, [{V: terms.term(i)} if i else {} for i in rows])
            except ExpressionError:
                assert found[m] == 0
            else:
                assert terms.term(found[m]) == expected


def test_nothing_is_kept_of_matches_that_have_been_written() -> None:
    run = Driven(query("A : B:+", "", "SELECT (SUM(?bv) AS ?s) (COUNT(B) AS ?n)"))
    assert len(run.answer([Reading(time, kind) for time, kind in enumerate("abbb")])) > 3
    assert not [each for each in gc.get_objects() if type(each) is MatchRows]


def test_a_variable_with_a_name_like_those_of_parts() -> None:
    """It is a variable of the text all the same."""
    text = """SELECT (?__part_0 AS ?x) (SUM(?p) AS ?s) FROM STREAM S <http://e/s>
    WHERE { SEQ(A; B+) DEFINE GPM A ON S { ?a <http://e/price> ?__part_0 }
      DEFINE GPM B ON S { ?a <http://e/paid> ?p } }"""
    events = [
        (1, "<http://e/a> <http://e/price> 7 ."),
        (2, "<http://e/a> <http://e/paid> 2 ."),
        (3, "<http://e/a> <http://e/paid> 3 ."),
    ]
    found = oxiseq.run(text, streams={"S": events})
    assert [(m["x"].value, m["s"].value) for m in found] == [("7", "2"), ("7", "5")]
