"""SPAseq's Query 5 on real traffic: `python aarhus.py FOLDER [--lateness DURATION]`.

FOLDER holds the files of the CityBench benchmark (published with RSPLab, Apache-2.0): `traffic_182955.csv.gz`,
`traffic_195446.csv.gz`, `traffic_195578.csv.gz` and the knowledge base `SensorRepository.n3.gz`. Each row of a
CSV becomes an event with two observations, number of vehicles and average speed.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyoxigraph as ox

import oxiseq

HERE = Path(__file__).parent
CITYBENCH = "http://www.insight-centre.org/dataset/SampleEventService#"
SENSORS = ("182955", "195578", "195446")
SSN = "http://purl.oclc.org/NET/ssnx/ssn#"
VALUE = ox.NamedNode("http://purl.oclc.org/NET/sao/hasValue")
OBSERVED = ox.NamedNode(SSN + "observedProperty")
COLUMNS = {"VehicleCount": "vehicleCount", "AvgSpeed": "avgSpeed"}
"""Class of property in the knowledge base → column of the CSV."""

Event = tuple[datetime, list[ox.Triple]]


def load_kb(folder: Path) -> ox.Store:
    """The sensor repository, as one named graph."""
    store = ox.Store()
    with gzip.open(folder / "SensorRepository.n3.gz") as file:
        store.load(
            file.read(),
            format=ox.RdfFormat.N3,
            base_iri=CITYBENCH,
            to_graph=ox.NamedNode(CITYBENCH + "SensorRepository"),
        )
    return store


def properties(kb: ox.Store, sensor: str) -> dict[str, ox.NamedNode]:
    """Class (local name) → the property of that class that the sensor observes."""
    found = kb.query(
        f"SELECT ?class ?property WHERE {{ GRAPH ?g {{ "
        f"<{CITYBENCH}AarhusTrafficData{sensor}> <{SSN}observes> ?property . ?property a ?class }} }}"
    )
    assert isinstance(found, ox.QuerySolutions)
    return {solution["class"].value.rsplit("#", 1)[1]: solution["property"] for solution in found}


def events(folder: Path, kb: ox.Store, sensor: str) -> Iterator[Event]:
    """A sensor's readings in the order of the file. The times have no zone; they are taken as UTC."""
    observed = properties(kb, sensor)
    with gzip.open(folder / f"traffic_{sensor}.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            graph = []
            for kind, column in COLUMNS.items():
                node = ox.BlankNode()
                graph.append(ox.Triple(node, OBSERVED, observed[kind]))
                graph.append(ox.Triple(node, VALUE, ox.Literal(int(row[column]))))
            yield datetime.fromisoformat(row["TIMESTAMP"]).replace(tzinfo=UTC), graph


def look(name: str, readings: list[Event]) -> None:
    """Print what is odd about a file."""
    times = [each for each, _ in readings]
    latest, late, worst = times[0], 0, timedelta()
    for each in times:
        late += each < latest
        worst = max(worst, latest - each)
        latest = max(latest, each)
    doubles = sum(n - 1 for n in Counter(times).values())
    expected = (max(times) - min(times)) // timedelta(minutes=5) + 1
    print(
        f"sensor {name}: {len(times):,} rows of {expected:,} expected, {doubles} with the time of another, "
        f"{late} older than one before them (by up to {worst})"
    )


def main(folder: Path, lateness: timedelta | str = "0s") -> oxiseq.Matches:
    """Read the files, run the query, print what happens."""
    kb = load_kb(folder)
    began = time.perf_counter()
    streams = {CITYBENCH + "AarhusTrafficData" + s: list(events(folder, kb, s)) for s in SENSORS}
    for iri, readings in streams.items():
        look(iri[-6:], readings)
    print(f"knowledge base: {len(kb):,} triples; readings made into RDF in {time.perf_counter() - began:.1f} s")
    text = (HERE / "aarhus.spaseq").read_text(encoding="utf-8")
    began = time.perf_counter()
    matches = oxiseq.run(text, streams=streams, kb=kb, lateness=lateness)
    seconds = time.perf_counter() - began
    kinds = Counter(match["kind"].value.rsplit("#", 1)[1] for match in matches)
    print(
        f"{len(matches):,} matches ({dict(kinds)}), {matches.late} late events, {matches.events:,} events "
        f"in {seconds:.1f} s ({matches.events / seconds:,.0f} events/s)"
    )
    return matches


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="SPAseq's Query 5 on real traffic.")
    parser.add_argument("folder", type=Path, help="where CityBench's files are")
    parser.add_argument("--lateness", default="0s", help="how much readings may be out of order: 15m")
    given = parser.parse_args()
    for match in list(main(given.folder, given.lateness))[:10]:
        print(
            match["from"].value,
            match.at.time(),
            match["kind"].value.rsplit("#", 1)[1],
            *(match[v].value for v in ("v1", "v2", "v3")),
        )
