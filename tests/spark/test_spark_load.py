"""The load on Spark gives the store, the quarantine and the report that the load in one process gives."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, Store
from spark_files import EX, contents, quarantine, write_all

import oxiseq
from oxiseq.cli import main
from oxiseq.engine.errors import KbError
from oxiseq.kb_loader import INFERRED, LoadReport, Progress, load, open_kb, reason
from oxiseq.kb_loader.rdfs import DOMAIN, RANGE, SUB_CLASS, SUB_PROPERTY, TYPE
from oxiseq.kb_loader.spark import pieces
from oxiseq.kb_loader.staging import new_staging

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def counts(report: LoadReport) -> dict[str, object]:
    return {
        name: getattr(report, name)
        for name in (
            "files",
            "read",
            "stored",
            "duplicates",
            "quarantined",
            "faults",
            "inferred",
            "statistics",
            "without",
        )
    }


@pytest.mark.parametrize(
    ("reasoning", "graph", "skolemise"),
    [("rdfs", None, False), pytest.param(None, "http://e.org/all", True, marks=pytest.mark.full)],
)
@pytest.mark.slow
def test_dirty_sources_give_the_same(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    reasoning: str | None,
    graph: str | None,
    skolemise: bool,
) -> None:
    monkeypatch.setattr(pieces.tasks, "__defaults__", (5_000,))  # several pieces of a file
    given = write_all(tmp_path / "in")
    for name, text in {"nothing.nt": "", "nothing.csv": "", "rowless.csv": "id,name,kind,age\n"}.items():
        (given / name).write_text(text)
    reports = {
        engine: load(
            given,
            tmp_path / engine,
            engine=engine,
            reasoning=reasoning,
            mapping=given / "mapping.rq",
            graph=graph,
            skolemise=skolemise,
        )
        for engine in ("plain", "spark")
    }
    assert counts(reports["spark"]) == counts(reports["plain"])
    assert {"nothing.nt", "nothing.csv", "rowless.csv"} <= {path.name for path in reports["plain"].without}
    assert reports["plain"].quarantined > 20
    assert reports["plain"].duplicates > 100
    assert contents(open_kb(tmp_path / "spark")) == contents(open_kb(tmp_path / "plain"))
    assert quarantine(tmp_path / "spark.quarantine") == quarantine(tmp_path / "plain.quarantine")
    assert not (tmp_path / "spark.parts").exists()


@pytest.mark.slow
def test_parts_are_kept_sorted_and_coded_and_can_be_read(spark: SparkSession, tmp_path: Path) -> None:
    given = write_all(tmp_path / "in", seed=2, lines=150)
    for table in given.rglob("people.*"):
        table.unlink()
    parts = tmp_path / "parts"
    report = load(given, tmp_path / "kb", parts=parts, reasoning="rdfs")
    assert report.engine == "spark"
    asserted, inferred = (
        [line for file in sorted((parts / name).glob("part-*.nq")) for line in file.read_text().splitlines()]
        for name in ("data", "inferred")
    )
    assert asserted == sorted(asserted, key=lambda line: ("_:" in line, line.encode()))
    assert len(set(inferred)) == len(inferred) == report.inferred
    whole, _ = contents(open_kb(tmp_path / "kb"))
    coded = parts / "coded"
    assert {(q.subject, q.object) for q in open_kb(coded)} == {(q.subject, q.object) for q in whole}
    assert contents(open_kb(coded))[0] == whole
    assert load(coded, tmp_path / "again", engine="plain").stored == len(whole)  # blank nodes are the folder's now
    assert oxiseq_asks(coded) == oxiseq_asks(tmp_path / "kb") != []


def oxiseq_asks(kb: Path) -> list[str]:
    """What a query over a stream finds in a knowledge base."""
    text = f"""PREFIX : <{EX}> SELECT ?x ?y WITHIN 1 HOUR FROM STREAM S <{EX}stream>
    WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?x :seen 1 GRAPH <urn:oxiseq:inferred> {{ ?x a ?y }} }} }}"""
    event = "".join(f"<{EX}s{i}> <{EX}seen> 1 .\n" for i in range(60))
    found = oxiseq.run(text, streams={"S": [(0, event)]}, kb=kb)
    return sorted(f"{match['x'].value} {match['y'].value}" for match in found)


def test_strict_stops_at_a_fault_and_leaves_the_store_marked(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces.tasks, "__defaults__", (2_000,))
    lines = [f"<{EX}a> <{EX}p> <{EX}o{i}> ." for i in range(300)]
    lines[250] = "oops"
    (tmp_path / "a.nt").write_text("\n".join(lines))
    with pytest.raises(KbError, match=r"a\.nt:251: "):
        load(tmp_path / "a.nt", tmp_path / "kb", engine="spark", strict=True)
    with pytest.raises(KbError, match="half loaded"):
        open_kb(tmp_path / "kb")
    assert not (tmp_path / "kb.parts").exists()


@pytest.mark.full
@pytest.mark.parametrize("step", ["sorting", "loading"])
def test_an_interrupted_load_starts_over(spark: SparkSession, tmp_path: Path, step: str) -> None:
    (tmp_path / "a.nt").write_text("".join(f"<{EX}a> <{EX}p> <{EX}o{i}> .\n" for i in range(50)))

    def interrupt(at: Progress) -> None:
        if at.step == step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load(tmp_path / "a.nt", tmp_path / "kb", engine="spark", watch=interrupt)
    with pytest.raises(KbError, match="half loaded"):
        open_kb(tmp_path / "kb")
    (new_staging(tmp_path / "kb.parts") / "clean").mkdir()  # as a kill leaves it
    assert load(tmp_path / "a.nt", tmp_path / "kb", engine="spark").stored == 50
    open_kb(tmp_path / "kb")


def test_other_peoples_files_are_not_parts(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "thesis.txt").write_text("")
    with pytest.raises(KbError, match=r"thesis\.txt, which no load wrote"):
        new_staging(tmp_path / "parts")
    (tmp_path / "parts" / "thesis.txt").rename(tmp_path / "parts" / "data")  # a name of ours, without our mark
    with pytest.raises(KbError, match="data, which no load wrote"):
        new_staging(tmp_path / "parts")


SCHEMAS = {
    "one pass": [
        (0, SUB_CLASS, 1),
        (1, SUB_CLASS, 2),
        (2, SUB_CLASS, 1),
        (3, SUB_PROPERTY, 4),
        (4, RANGE, 0),
        (3, DOMAIN, 5),
    ],
    "types have super-properties": [(TYPE, SUB_PROPERTY, 3), (3, DOMAIN, 1), (1, SUB_CLASS, 0), (0, SUB_CLASS, 5)],
    "the schema's words are properties": [(5, SUB_PROPERTY, SUB_CLASS), (0, 5, 1), (SUB_CLASS, DOMAIN, 2), (1, 5, 4)],
}


@pytest.mark.full
@pytest.mark.parametrize("name", SCHEMAS)
def test_reasoning_gives_what_one_process_gives(spark: SparkSession, tmp_path: Path, name: str) -> None:
    from oxiseq.kb_loader.spark.parts import read_parts  # noqa: PLC0415  pyspark may not be there
    from oxiseq.kb_loader.spark.reasoning import reason_on_spark  # noqa: PLC0415

    rng = random.Random(name)
    facts = [(rng.randrange(6), rng.choice([TYPE, 3, 4]), rng.randrange(6)) for _ in range(12)]

    def term(of: int | NamedNode) -> NamedNode:
        return NamedNode(f"{EX}n{of}") if isinstance(of, int) else of

    store = Store()
    store.extend(Quad(*map(term, triple)) for triple in [*SCHEMAS[name], *facts])
    store.add(Quad(term(0), term(3), Literal("x")))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "part-0.nq").write_bytes(store.dump(format=RdfFormat.N_QUADS) or b"")
    count = reason_on_spark(spark, read_parts(spark, tmp_path / "data"), tmp_path / "inferred", 2)
    assert count == reason(store)
    found = {line for file in (tmp_path / "inferred").iterdir() for line in file.read_text().splitlines()}
    assert found == {f"{quad} ." for quad in store.quads_for_pattern(None, None, None, INFERRED)}


def test_the_command_says_which_engine_and_why(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text(f"<{EX}a> <{EX}p> <{EX}o> .\noops\n")
    arguments = ["load", tmp_path / "a.nt", "--location", tmp_path / "kb", "--parts", tmp_path / "parts"]
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.stderr
    assert "Spark, which parts is for" in result.stderr
    assert "1 file · 1 statement · 0 duplicates · 1 quarantined" in result.stderr
    assert (tmp_path / "parts" / "coded" / "terms").is_dir()
    refused = CliRunner().invoke(main, [*map(str, arguments), "--engine", "plain", "--restart"])
    assert refused.exit_code == 1
    assert "parts is Spark's" in refused.stderr
