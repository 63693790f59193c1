"""Columns of matches as numbers, times and terms."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from oxiseq.grammar import load
from oxiseq.kb_loader.java import spark_missing

if spark_missing() is not None:
    pytest.skip(spark_missing() or "", allow_module_level=True)

from pyspark.sql import Observation

from oxiseq.spark import SparkError, match
from oxiseq.spark.inference import inferred

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PREFIX = "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
ONE = PREFIX + "SELECT ?x ?v FROM STREAM S <http://e/s> WHERE { SEQ(A) DEFINE GPM A ON S { ?x :v ?v } }"
XSD = "http://www.w3.org/2001/XMLSchema#"
TERMS = [
    "<http://e/i>",
    f'"88"^^<{XSD}integer>',
    f'"103"^^<{XSD}integer>',
    '"1.5"',
    f'"INF"^^<{XSD}double>',
    '"bon \\"jour\\""@fr',
    f'"2026-11-27T01:02:03Z"^^<{XSD}dateTime>',
    '<<( <http://e/a> <http://e/b> "c" )>>',
]


@pytest.mark.parametrize(
    ("columns", "filters", "types"),
    [
        ("?a ?b", "?a > 3", {"a": "double"}),
        ("?a ?b", "3 <= ?b && ?a = 'x'", {"b": "double"}),
        ("?a ?b", "?a > ?b", {}),
        ("?a ?b", "?a > 3 || ?b > 3", {}),
        ("?a ?b", "?a != 3", {}),
        ("?a ?b", "?b > ?a + 1", {"a": "double", "b": "double"}),
        ("?a ?b", "?a = true && ?b < '2026-01-01T00:00:00Z'^^xsd:dateTime", {"a": "boolean", "b": "timestamp"}),
        ("?a", "datatype(?a) = xsd:integer", {"a": "bigint"}),
        ("?a ?b", "isNumeric(?a)", {"a": "double"}),
        ("*", "?a > 3", {"a": "double"}),
        (
            "(?a AS ?price) (STRLEN(?b) AS ?long) (?a > ?b AS ?up) (STR(?a) AS ?text) (?b - 1 AS ?less)",
            "?a > 3",
            {"price": "double", "long": "bigint", "up": "boolean", "less": "double"},
        ),
        ("?k (COUNT(*) AS ?n) (MAX(?a) AS ?most)", "?a > 3", {"n": "bigint", "most": "double"}),
    ],
)
def test_what_filters_and_expressions_make_certain(columns: str, filters: str, types: dict[str, str]) -> None:
    group = " GROUP BY ?k" if "COUNT" in columns else ""
    text = f"""{PREFIX} SELECT {columns} FROM STREAM S <http://e/s> WHERE {{ SEQ(A)
      DEFINE GPM A ON S {{ ?x :k ?k ; :a ?a ; :b ?b FILTER({filters}) }} }}{group}"""
    assert inferred(load(text)) == types


@pytest.mark.parametrize("sequence", ["SEQ(B?; A)", "SEQ(A; (B | C))", "SEQ(A; B!; C)"])
def test_what_not_every_match_has_passed_is_not_certain(sequence: str) -> None:
    gpms = {"A": "?a :a ?k", "B": "?b :v ?v FILTER(?v > 3)", "C": "?c :v ?v"}
    defined = " ".join(f"DEFINE GPM {name} ON S {{ {gpms[name]} }}" for name in gpms if name in sequence[3:])
    text = f"{PREFIX} SELECT ?v FROM STREAM S <http://e/s> WHERE {{ {sequence} {defined} }}"
    assert inferred(load(text)) == {}


def frame_of(spark: SparkSession) -> DataFrame:
    """An event a microsecond, each with one of the terms."""
    rows = [(i + 1, f"_:x <http://e/v> {term} .") for i, term in enumerate(TERMS)]
    return spark.createDataFrame(rows, "time bigint, graph string")


def test_terms_come_apart(spark: SparkSession) -> None:
    frame = frame_of(spark)
    rows = match(spark, ONE, {"S": frame}, types="terms").orderBy("at").collect()
    assert [tuple(row.v) for row in rows] == [
        ("http://e/i", None, None, "iri"),
        ("88", XSD + "integer", None, "literal"),
        ("103", XSD + "integer", None, "literal"),
        ("1.5", XSD + "string", None, "literal"),
        ("INF", XSD + "double", None, "literal"),
        ('bon "jour"', "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString", "fr", "literal"),
        ("2026-11-27T01:02:03Z", XSD + "dateTime", None, "literal"),
        (rows[-1].v.value, None, None, "triple"),
    ]
    assert {row.x.kind for row in rows} == {"blank"}
    assert [(each.stream, each.time.microsecond) for each in rows[1].events_A] == [("http://e/s", 2)]


def test_values_are_cast_and_what_does_not_fit_is_counted(spark: SparkSession) -> None:
    frame = frame_of(spark)
    seen = Observation("seen")
    found = match(spark, ONE, {"S": frame}, types={"v": "double"}, name=seen)
    assert [row.v for row in found.orderBy("at").collect()] == [None, 88.0, 103.0, 1.5, float("inf"), None, None, None]
    assert seen.get == {"matches": 8, "late": 0, "cast_errors": 4}
    found = match(spark, ONE, {"S": frame}, types={"v": "timestamp"})
    times = [row.v for row in found.where("at = timestamp_micros(7)").collect()]
    assert times[0].astimezone(UTC) == datetime(2026, 11, 27, 1, 2, 3, tzinfo=UTC)


def test_types_that_are_none_are_refused(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, "")], "time bigint, graph string")
    for types, message in (
        ({"w": "double"}, r"the query has no column \?w; it has x, v"),
        ({"v": "money"}, "v is 'money', which is no type of Spark SQL's"),
        ({"v": ""}, "v is '', which is no type"),
        ({"v": 3}, "v is 3, which is no type"),
        ({"v": "int; drop"}, "v is 'int; drop', which is no type"),
        ({"v": "array<int>"}, "v is array<int>; a term has one value"),
        (None, "types is text, ntriples"),
    ):
        with pytest.raises(SparkError, match=message):
            match(spark, ONE, {"S": frame}, types=types)  # type: ignore[arg-type]
