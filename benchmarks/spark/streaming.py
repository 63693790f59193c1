"""The streaming operator beside the engine alone, on the same files of events.

    python -m benchmarks.spark.streaming [--events 800000] [--cores 1 --cores 2] [--form arrow] [--files 5] [--warm 1]

The V-shape over 5,000 companies: each quote is a candidate for all three patterns. The events lie in files of 100,000,
some of which make a micro-batch; what is timed is behind the first `--warm` micro-batches: the first one starts workers
and loads kernels (told by itself), and Java compiles what it runs for some ten more. `engine` reads the same files with
`oxiseq.run`'s driver in this process. The matches must be as many, but for those that end with the last event.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.data import NS, STREAM, quotes
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.open import write_events
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load
from oxiseq.languages.registry import language_named
from oxiseq.options import Options

COMPANIES = 5_000
IN_A_FILE = 100_000
FILES = 5
"""Files of a micro-batch."""
ENDINGS = {"arrow": ".arrow", "nquads": ".nq"}


def query(window: int) -> str:
    """A fall and a rise of one company within `window` seconds."""
    return f"""PREFIX : <{NS}>
SELECT ?c ?p1 ?p2 ?p3 WITHIN {window} SECONDS SLIDING
FROM STREAM S <{STREAM}>
WHERE {{
  SEQ(A; B; C)
  DEFINE GPM A ON S {{ ?a :company ?c ; :price ?p1 }}
  DEFINE GPM B ON S {{ ?b :company ?c ; :price ?p2 . FILTER(?p2 < ?p1) }}
  DEFINE GPM C ON S {{ ?d :company ?c ; :price ?p3 . FILTER(?p3 > ?p2) }}
}}"""


def write(folder: Path, events: int, form: str) -> None:
    """The quotes, in files whose names rise."""
    terms = TermDictionary()
    whole = EventBatch.concat(quotes(terms, events, COMPANIES).batches)
    for number, low in enumerate(range(0, events, IN_A_FILE)):
        name = folder / f"{number:04d}{ENDINGS[form]}"
        write_events([whole.slice(low, low + IN_A_FILE)], terms, name)


def engine(folder: Path, window: int) -> dict[str, Any]:
    """One engine over the files: CPU seconds and wall seconds, matches."""
    driver = language_named("spaseq").driver(load(query(window)), None, Options())
    sources = sorted(folder.iterdir())

    def batches(terms: TermDictionary) -> Any:
        from oxiseq.engine.events.open import open_events  # noqa: PLC0415  the child's own

        for file in sources:
            yield from open_events(file, terms)

    warm = language_named("spaseq").driver(load(query(window)), None, Options())
    warm.attach("S", lambda terms: quotes(terms, 2_000, COMPANIES).batches.__iter__())
    sum(len(batch) for batch in warm.batches())
    driver.attach("S", batches)
    wall, cpu = time.perf_counter(), time.process_time()
    found = sum(len(batch) for batch in driver.batches())
    return {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "matches": found}


def operator(folder: Path, window: int, cores: int, scratch: Path, files: int, warm: int = 1) -> dict[str, Any]:
    """The operator over the same files, a new session of so many cores."""
    from oxiseq.kb_loader.session import spark_session  # noqa: PLC0415  as above
    from oxiseq.spark import EventSource, match  # noqa: PLC0415  as above

    begun = time.perf_counter()
    spark = spark_session(f"local[{cores}]", "2g")
    session = time.perf_counter() - begun
    spark.conf.set("spark.sql.shuffle.partitions", cores)
    spark.dataSource.register(EventSource)
    events = spark.readStream.format("oxiseq").option("maxFilesPerTrigger", files).load(str(folder))
    rows = match(spark, query(window), {"S": events})
    begun = time.perf_counter()
    running = (
        rows.writeStream.format("noop")
        .option("checkpointLocation", str(scratch / f"checkpoint-{cores}"))
        .trigger(availableNow=True)
        .start()
    )
    begun_cpu = None
    while running.isActive:
        time.sleep(0.05)
        if begun_cpu is None and running.lastProgress is not None and running.lastProgress["batchId"] >= warm - 1:
            begun_cpu = cpu_seconds()  # the first ones are done
    spent = cpu_seconds() - (begun_cpu or 0.0)
    running.awaitTermination()
    total = time.perf_counter() - begun
    steps = [step for step in running.recentProgress if step["numInputRows"]]
    state = [sum(part["commitTimeMs"] for part in step["stateOperators"]) / 1000 for step in steps]
    return {
        "session": session,
        "total": total,
        "first": steps[0]["durationMs"]["triggerExecution"] / 1000,
        "cpu": spent,
        "steps": [step["durationMs"]["triggerExecution"] / 1000 for step in steps[warm:]],
        "commit": state[warm:],
        "matches": sum(step["observedMetrics"]["oxiseq"]["matches"] for step in running.recentProgress),
    }


def cpu_seconds() -> float:
    """What this process's session has spent, Java and the workers included."""
    mine, ticks = os.getsid(0), 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue  # it has ended
            if int(fields[3]) == mine:
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=800_000)
    parser.add_argument("--cores", type=int, action="append")
    parser.add_argument("--form", choices=list(ENDINGS), default="arrow")
    parser.add_argument("--window", type=int, default=10_000, help="seconds; there is a quote each second")
    parser.add_argument("--files", type=int, default=FILES, help="of 100,000 events, in a micro-batch")
    parser.add_argument("--warm", type=int, default=1, help="micro-batches that are not timed")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        folder, scratch = Path(given.child), Path(given.child).parent
        result = (
            engine(folder, given.window)
            if not given.cores
            else operator(folder, given.window, given.cores[0], scratch, given.files, given.warm)
        )
        print(json.dumps(result))
        return
    print(f"load before: {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores; {given.events:,} events as {given.form}")
    with tempfile.TemporaryDirectory(prefix="oxiseq-bench-") as scratch_:
        folder = Path(scratch_, "events")
        folder.mkdir()
        write(folder, given.events, given.form)
        alone = _child(given, folder, [])
        print(
            f"engine alone: {given.events / alone['seconds']:,.0f} events/s, "
            f"{given.events / alone['cpu']:,.0f} per CPU second; {alone['matches']:,} matches"
        )
        for cores in given.cores or [1, 2]:
            told = _child(given, folder, ["--cores", str(cores)])
            seconds, events = sum(told["steps"]), given.events - given.warm * given.files * IN_A_FILE
            print(
                f"local[{cores}]: {events / seconds:,.0f} events/s, {events / told['cpu']:,.0f} per CPU second; "
                f"session {told['session']:.1f} s, first micro-batch {told['first']:.1f} s; state commits "
                f"{sum(told['commit']) / seconds:.1%} of the time; {told['matches']:,} matches"
            )


def _child(given: argparse.Namespace, folder: Path, more: list[str]) -> dict[str, Any]:
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        __spec__.name,
        "--child",
        str(folder),
        "--window",
        str(given.window),
        "--form",
        given.form,
        "--files",
        str(given.files),
        "--warm",
        str(given.warm),
        *more,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, start_new_session=True)
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


if __name__ == "__main__":
    main()
