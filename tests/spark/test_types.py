"""Columns of matches as numbers, times and terms."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pyoxigraph import RdfFormat, Store

import oxiseq
from oxiseq.grammar import load
from oxiseq.kb_loader.java import spark_missing

if spark_missing() is not None:
    pytest.skip(spark_missing() or "", allow_module_level=True)

from pyspark.sql import Observation
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from oxiseq.spark import SparkError, match
from oxiseq.spark.facts import Facts, of_mapping
from oxiseq.spark.given import Given
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
    assert inferred(load(text), Facts()) == types


@pytest.mark.parametrize("sequence", ["SEQ(B?; A)", "SEQ(A; (B | C))", "SEQ(A; B!; C)"])
def test_what_not_every_match_has_passed_is_not_certain(sequence: str) -> None:
    gpms = {"A": "?a :a ?k", "B": "?b :v ?v FILTER(?v > 3)", "C": "?c :v ?v"}
    defined = " ".join(f"DEFINE GPM {name} ON S {{ {gpms[name]} }}" for name in gpms if name in sequence[3:])
    text = f"{PREFIX} SELECT ?v FROM STREAM S <http://e/s> WHERE {{ {sequence} {defined} }}"
    assert inferred(load(text), Facts()) == {}


def given_of(mapping: Any, **columns: DataType) -> Given:
    """A DataFrame's columns, without Spark."""
    frame: Any = SimpleNamespace(schema=StructType([StructField(name, kind) for name, kind in columns.items()]))
    return Given(frame, oxiseq.StreamMapping(mapping))


CONSTRUCT = (
    PREFIX
    + """CONSTRUCT { ?s :v ?n ; :v 1 ; :text ?t ; :n ?b ; :both ?n, ?b ; :mixed ?n, ?t }
  WHERE { BIND(IRI(?id) AS ?s) BIND(xsd:decimal(?v) AS ?n) }"""
)


def test_what_mappings_make_certain() -> None:
    text, whole, at = StringType(), IntegerType(), TimestampType()
    given = given_of(CONSTRUCT, id=text, v=text, t=text, b=whole, time=at)
    assert of_mapping(given) == {"http://e/v": "double", "http://e/n": "bigint", "http://e/both": "double"}
    predicates = {f"http://e/{name}": name for name in ("a", "b", "c.d", "e")}
    flat = {"subject": "http://e/{id}", "time": "at", "predicates": predicates}
    inner = StructType([StructField("d", DateType())])
    assert of_mapping(given_of(flat, id=text, a=DoubleType(), b=DecimalType(9, 2), c=inner, e=text, at=at)) == {
        "http://e/a": "double",
        "http://e/b": "decimal(9,2)",
        "http://e/c.d": "date",
    }
    anything = "CONSTRUCT { ?s ?p ?v } WHERE { BIND(IRI(?id) AS ?s) BIND(IRI(?key) AS ?p) }"
    assert of_mapping(given_of(anything, id=text, key=text, v=DoubleType(), time=at)) == {}


@pytest.mark.parametrize(
    ("sequence", "types"),
    [
        ("SEQ(A; B)", {"v": "bigint", "w": "double", "x": "boolean"}),
        ("SEQ(A; B?)", {"v": "bigint", "x": "boolean"}),
    ],
)
def test_what_patterns_make_certain(sequence: str, types: dict[str, str]) -> None:
    kb = Store()
    kb.load(
        b"""@prefix : <http://e/> . :g { :a :w 1, 2.5 ; :s 1, "1" . } :h { :a :w "no number" ; :x true . }""",
        format=RdfFormat.TRIG,
    )
    text = f"""{PREFIX} SELECT ?v ?w ?s ?x ?o FROM STREAM S <http://e/s> FROM STREAM T <http://e/t> WHERE {{ {sequence}
      DEFINE GPM A ON S {{ ?e :v ?v ; :k ?k GRAPH ?g {{ ?k :x ?x ; :gone ?o }} }}
      DEFINE GPM B ON T {{ ?f :v ?u ; :k ?k GRAPH :g {{ ?k :w ?w ; :s ?s }} }} }}"""
    assert inferred(load(text), Facts({"http://e/s": {"http://e/v": "bigint"}}, kb)) == types


def test_rows_are_events_by_their_mapping(spark: SparkSession) -> None:
    """And columns have the types that it makes certain."""
    rows = [("a", "1.50", 3), ("a", "2.25", 7), ("b", "oops", 8), ("a", "3.00", None)]
    frame = spark.createDataFrame(rows, "`the id` string, price string, at bigint").selectExpr(
        "`the id`", "try_cast(price AS decimal(9,2)) AS price", "named_struct('at', timestamp_micros(at)) AS when"
    )
    mapping = {"subject": "http://e/{the id}", "time": "when.at", "predicates": {"http://e/v": "price"}}
    found = match(spark, ONE, {"S": frame}, mappings={"S": mapping}, types="infer", on_error="skip")
    assert found.schema["v"].dataType.simpleString() == "decimal(9,2)"
    assert [(row.x, str(row.v)) for row in found.orderBy("at").collect()] == [
        ("http://e/a", "1.50"),
        ("http://e/a", "2.25"),
    ]
    for mappings, message in (
        ({"S": {**mapping, "time": "where"}}, "no column 'where', which the mapping reads; there are the id, price, w"),
        ({"T": mapping}, "the query reads no stream 'T'"),
        ({"S": "CONSTRUCT { ?s ?p } WHERE {}"}, "Parse|expected"),
        ({"S": {"contexts": {}}}, "the mapping does not say what rows mean"),
        ({"S": {**mapping, "time": None}}, "the mapping does not say the time of a row"),
    ):
        with pytest.raises(oxiseq.OxiseqError, match=message):
            match(spark, ONE, {"S": frame}, mappings=mappings)
    with pytest.raises(SparkError, match="mappings= says what other columns mean"):
        match(spark, ONE, {"S": frame})


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
    rows = sorted(found.collect(), key=lambda row: row.at)  # orderBy looks at all rows before: Spark 4.2 counts twice
    assert [row.v for row in rows] == [None, 88.0, 103.0, 1.5, float("inf"), None, None, None]
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
