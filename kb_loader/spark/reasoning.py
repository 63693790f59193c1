"""RDFS on Spark: the tables of `rdfs.Rules`, joined with the statements.

Only the schema (the class and property trees, domains and ranges) is brought to the driver, closed there, and sent to
all tasks. Each statement then yields what it yields by itself, in one pass.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from oxiseq.kb_loader.graphs import INFERRED
from oxiseq.kb_loader.rdfs import SCHEMA, TYPE, Pairs, Rules, Term, compile_rules
from oxiseq.kb_loader.spark.parts import read_parts, write_parts
from oxiseq.kb_loader.spark.terms import no_resource, term_of, with_terms

_TEXTS = pa.list_(pa.string())


def reason_on_spark(spark: SparkSession, data: DataFrame, folder: Path, parts: int) -> int:
    """Write what the rules yield of the statements `data` (a column `line`) to part files; returns how many they are.

    As `rdfs.reason`, again until nothing is new where what is inferred may be the start of more.
    """
    count = -1
    turn = 0
    lines = data
    while True:
        facts = with_terms(lines)
        rules = compile_rules(_Schema(facts).pairs)
        target = folder.with_name(f"{folder.name}-{turn}")
        before, count = count, write_parts(_inferred(spark, facts, rules), target, parts)
        if count == before or not rules.again:
            target.rename(folder)
            return count
        lines = data.unionAll(read_parts(spark, target))
        turn += 1


class _Schema:
    """The pairs of schema statements; the four usual predicates are read at once."""

    def __init__(self, facts: DataFrame) -> None:
        self._facts = facts
        self._held: dict[str, Pairs] = {}
        self._ask([str(p) for p in SCHEMA])

    def pairs(self, predicate: Term) -> Pairs:
        """(subject, object) of all statements with the predicate, without literals."""
        text = str(predicate)
        if text not in self._held:
            self._ask([text])
        return self._held[text]

    def _ask(self, predicates: list[str]) -> None:
        self._held |= {p: set() for p in predicates}
        asked = self._facts.where(f.col("p").isin(predicates) & ~no_resource("o")).select("p", "s", "o").distinct()
        for row in asked.collect():
            self._held[row["p"]].add((term_of(row["s"]), term_of(row["o"])))


def _inferred(spark: SparkSession, facts: DataFrame, rules: Rules) -> DataFrame:
    """The column `line` of all that is inferred; the same may come several times."""
    hierarchy = _table(
        spark,
        s=pa.array([str(s) for s, _, _ in rules.hierarchy], pa.string()),
        p=pa.array([str(p) for _, p, _ in rules.hierarchy], pa.string()),
        o=pa.array([str(o) for _, _, o in rules.hierarchy], pa.string()),
    )
    used = facts.join(f.broadcast(_by_property(spark, rules)), "p")
    typed = f.when(f.col("typing"), f.col("o"))
    used = used.withColumn("class", typed).join(f.broadcast(_by_class(spark, rules)), "class", "left")
    type_ = f.lit(str(TYPE))

    def triple(s: Column, p: Column, o: Column) -> Column:
        return f.struct(s.alias("s"), p.alias("p"), o.alias("o"))

    def made(column: str, of: Callable[[Column], Column]) -> Column:
        return f.transform(f.coalesce(f.col(column), f.array().cast("array<string>")), of)

    of_object = made("objects", lambda c: triple(f.col("o"), type_, c))
    yields = f.concat(
        made("supers", lambda p: triple(f.col("s"), p, f.col("o"))),
        made("subjects", lambda c: triple(f.col("s"), type_, c)),
        f.when(no_resource("o"), f.slice(of_object, 1, 0)).otherwise(of_object),
        made("classes", lambda c: triple(f.col("s"), type_, c)),
    )
    yielded = used.select(f.explode(yields).alias("t")).select("t.s", "t.p", "t.o")
    graph = f.lit(f"{INFERRED} .")
    return yielded.unionAll(hierarchy).select(f.concat_ws(" ", "s", "p", "o", graph).alias("line")).distinct()


def _by_property(spark: SparkSession, rules: Rules) -> DataFrame:
    """For each property that yields anything: what is above it, classes of subjects and of objects, if it types."""
    used = list(rules.used)

    def texts(of: dict[Term, list[Term]]) -> pa.Array:
        return pa.array([[str(t) for t in of.get(p, ())] for p in used], _TEXTS)

    return _table(
        spark,
        p=pa.array([str(p) for p in used], pa.string()),
        supers=texts(dict(rules.supers)),
        subjects=texts(rules.of_subject),
        objects=texts(rules.of_object),
        typing=pa.array([p in rules.typing for p in used], pa.bool_()),
    )


def _by_class(spark: SparkSession, rules: Rules) -> DataFrame:
    """For each class whose instances yield anything: the classes that they are asserted to be in."""
    known = list({*rules.given, *rules.classes})
    told = [[str(c) for c in ([k] if k in rules.given else []) + rules.classes.get(k, [])] for k in known]
    return _table(spark, **{"class": pa.array([str(k) for k in known], pa.string()), "classes": pa.array(told, _TEXTS)})


def _table(spark: SparkSession, **columns: pa.Array) -> DataFrame:
    return spark.createDataFrame(pa.table(columns))
