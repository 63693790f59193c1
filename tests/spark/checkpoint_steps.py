"""Streaming queries of each language that Spark takes, over the folder FOLDER/in, each with a checkpoint of its own.

python checkpoint_steps.py FOLDER makes the fixture `tests/baseline/spark-666c5b34.tar.xz` in an environment of the
version that it comes from: it works through the first half of the events, and writes what was found. The same steps
then go on from there under the present version.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

E = "http://e/"
BEGIN = 1_714_557_600_000_000
"""2024-05-01T10:00:00Z in microseconds."""
HALF = 40
"""Events of each half."""
_XSD = "http://www.w3.org/2001/XMLSchema#"
_PROV = "<http://www.w3.org/ns/prov#generatedAtTime>"
_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"

QUERIES: dict[str, tuple[str, str, list[str]]] = {
    "sequence": (
        "spaseq",
        f"""PREFIX : <{E}> SELECT ?k ?a ?b WITHIN 30 SECONDS SLIDING FROM STREAM S <{E}S> WHERE {{
          SEQ(A; K+; B) DEFINE GPM A ON S {{ ?x :k ?k ; :v ?a }} DEFINE GPM K ON S {{ ?y :k ?k }}
          DEFINE GPM B ON S {{ ?z :k ?k ; :v ?b FILTER(?b > ?a) }} }}""",
        ["k", "a", "b"],
    ),
    "complex": (
        "ceql",
        f"VOCAB <{E}> SELECT x, y FROM S WHERE A AS x ; B AS y FILTER y[v > 3] WITHIN 20 SECONDS PARTITION BY [k]",
        [],
    ),
    "graph": (
        "spectra",
        f"PREFIX : <{E}> SELECT ?s ?k ?v FROM STREAM <{E}S> [RANGE PT5S SLIDE PT1S] WHERE {{ ?s :k ?k ; :v ?v }}",
        ["s", "k", "v"],
    ),
    "groups": (
        "rspql",
        f"""PREFIX : <{E}> SELECT ?s (MAX(?v) AS ?most) (COUNT(*) AS ?n) FROM STREAM <{E}S> [RANGE PT20S SLIDE PT1S]
          WHERE {{ ?s :v ?v FILTER(?v > 2) }} GROUP BY ?s""",
        ["s", "most", "n"],
    ),
}
"""By name: the language, the text, the variables that are compared."""


def events(half: int) -> list[tuple[int, str]]:
    """(time, N-Triples) of one half (0 or 1)."""
    dice, found = random.Random(half), []
    for number in range(HALF * half, HALF * (half + 1)):
        subject = f"<{E}s{dice.randint(0, 2)}>"
        lines = (
            f"{_TYPE} <{E}{dice.choice('AB')}>",
            f'<{E}k> "{dice.randint(0, 2)}"',
            f'<{E}v> "{dice.randint(0, 9)}"',
        )
        typed = (lines[0], lines[1], f"{lines[2]}^^<{_XSD}integer>")
        found.append((BEGIN + number * 1_000_000, "".join(f"{subject} {line} .\n" for line in typed)))
    return found


def write(folder: Path, half: int) -> None:
    """A half of the events as a file of N-Quads."""
    text = ""
    for number, (time, graph) in enumerate(events(half)):
        name = f"<urn:event:{half}:{number}>"
        text += f'{name} {_PROV} "{time}"^^<{_XSD}integer> .\n'
        text += "".join(f"{line.removesuffix(' .')} {name} .\n" for line in graph.splitlines())
    (folder / "in").mkdir(parents=True, exist_ok=True)
    (folder / "in" / f"{half}.nq").write_text(text)


def work_through(spark: SparkSession, folder: Path, name: str) -> list[tuple[int, ...]]:
    """What a query finds in the files that are new to its checkpoint: (time, values or times of events), sorted."""
    from pyspark.sql import functions as F  # noqa: PLC0415  this file is imported by tests without Java
    from slow_starts import started  # noqa: PLC0415  as above

    from oxiseq.spark import EventSource, match  # noqa: PLC0415  as above

    language, text, names = QUERIES[name]
    spark.dataSource.register(EventSource)
    stream = spark.readStream.format("oxiseq").load(str(folder / "in"))
    found = match(spark, text, {f"{E}S": stream} if names else {"S": stream}, buckets=2, language=language)
    at = F.expr("unix_micros(at)")
    shown = [F.col(each).cast("string") for each in names]
    shown = shown or [F.expr(f"concat_ws(' ', transform(events_{v}, e -> unix_micros(e)))") for v in "xy"]
    rows: list[Any] = []
    writing = found.select(at, *shown).writeStream.foreachBatch(lambda part, _: rows.extend(map(tuple, part.collect())))
    writing = writing.option("checkpointLocation", str(folder / name)).trigger(availableNow=True)
    started(lambda: writing.start().awaitTermination())
    return sorted(rows)


PLACE = "/checkpoints/of/before"
"""Where the fixture's checkpoints say that they are."""


def move(folder: Path, before: str, now: str) -> None:
    """Write another place into checkpoints: Spark keeps the whole path of a state's schema."""
    for file in folder.glob("*/state/*/_metadata/v2/0"):
        file.write_text(file.read_text().replace(before, now))
        file.with_name(".0.crc").unlink(missing_ok=True)


def main(folder: Path) -> None:
    """The first half."""
    import json  # noqa: PLC0415

    from oxiseq.kb_loader.session import spark_session, stop_session  # noqa: PLC0415  tests import this without Java

    spark = spark_session("local[2]", "1g")
    spark.conf.set("spark.sql.shuffle.partitions", 2)
    write(folder, 0)
    (folder / "found.json").write_text(json.dumps({name: work_through(spark, folder, name) for name in QUERIES}))
    stop_session(spark)
    move(folder, str(folder), PLACE)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
