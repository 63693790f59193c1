"""The Data Source: a folder's files and a served stream, each event once, whatever limits say."""

from __future__ import annotations

import gzip
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from oxiseq.kb_loader.java import spark_missing

if spark_missing() is not None:
    pytest.skip(spark_missing() or "", allow_module_level=True)

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles, ReadMaxRows

sys.path.insert(0, str(Path(__file__).parent.parent / "server"))
from http_client import ask
from servers import served

from oxiseq.api.store import Store
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.journal import unpack_events
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.api import LiveRoutes
from oxiseq.server import ServerSettings
from oxiseq.spark import EventSource, match
from oxiseq.spark.source import Folder, Part, ServedStream, SourceError
from oxiseq.sparql import SparqlEndpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAM = "http://e/s"
QUERY = """PREFIX : <http://e/>
SELECT ?h ?a ?b FROM STREAM S <http://e/s> WHERE { SEQ(A; B)
  DEFINE GPM A ON S { ?h :watts ?a } DEFINE GPM B ON S { ?h :watts ?b FILTER(?b > ?a) } }"""


def event(at: int) -> str:
    integer = "^^<http://www.w3.org/2001/XMLSchema#integer>"
    return (
        f'<http://e/h> <http://e/watts> "{at}"{integer} <urn:e:{at}> .\n'
        f'<urn:e:{at}> <http://www.w3.org/ns/prov#generatedAtTime> "{at}"{integer} .\n'
    )


def times(blobs: list[bytes]) -> list[int]:
    return unpack_events(blobs, TermDictionary()).time.tolist()


def read(place: Folder | ServedStream, parts: object) -> list[int]:
    return times([blob for part in parts for blob in place.read(part)])  # type: ignore[attr-defined]


def test_files_are_read_once_whenever_they_appear(tmp_path: Path) -> None:
    place = Folder(str(tmp_path), 2, "stop")
    for name, at in (("b.nq", 2), ("c.nq", 3), (".hidden.nq", 9), ("_x.nq", 9), ("note.txt", 9), ("d.nq.1.part", 9)):
        (tmp_path / name).write_text(event(at))
    (tmp_path / "d.nq.gz").write_bytes(gzip.compress(event(4).encode()))
    assert place.most() == ReadMaxFiles(2)
    first = place.after(place.begin(), place.most(), place.end())
    assert read(place, place.parts(place.begin(), first)) == [2, 3]
    (tmp_path / "a.nq").write_text(event(1))  # its name comes before what has been read
    second = place.after(first, place.most(), place.end())
    assert read(place, place.parts(first, second)) == [1, 4]
    assert place.after(second, ReadAllAvailable(), place.end()) == second
    assert not place.parts(second, second)
    with pytest.raises(SourceError, match="no such file or folder"):
        Folder(str(tmp_path / "none"), None, "stop").end()


def test_options_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    for options, told in (
        ({}, "load.path. with a file"),
        ({"url": "http://e"}, "needs the option stream"),
        ({"path": str(tmp_path), "maxFilesPerTrigger": "0"}, "from 1 on"),
        ({"path": "x", "onError": "no"}, "stop or skip"),
    ):
        with pytest.raises(SourceError, match=told):
            EventSource(options).reader(None)
    with pytest.raises(SourceError, match="earliest, latest or a number"):
        ServedStream("http://e", STREAM, "first", None, None).begin()


@pytest.mark.slow
def test_a_served_stream_by_its_offsets(spark: SparkSession, tmp_path: Path) -> None:
    with LiveService(Store(), tmp_path, LiveSettings(idle=None), "normal") as service:
        endpoint = SparqlEndpoint(Store())
        routes = LiveRoutes(service, endpoint.evaluations)
        with served(endpoint, replace(ServerSettings(port=0, threads=6), live=2), routes) as address:
            target, nquads = "/streams/http%3A%2F%2Fe%2Fs", [("Content-Type", "application/n-quads")]
            assert ask(address, "PUT", target).status == 200
            for low in range(1, 31, 10):
                body = "".join(event(at) for at in range(low, low + 10)).encode()
                assert ask(address, "POST", target, nquads, body).status == 200
            place = ServedStream(address, STREAM, "earliest", 12, None)
            start, seen = place.begin(), []
            while (end := place.after(start, place.most(), place.end())) != start:
                assert end["offset"] - start["offset"] <= 12
                seen += read(place, place.parts(start, end))
                start = end
            assert seen == list(range(1, 31))
            assert replace(place, first="latest").begin() == start
            assert place.after({"offset": start["offset"] - 3}, ReadMaxRows(2), start)["offset"] == start["offset"] - 1
            with pytest.raises(SourceError, match="404"):
                replace(place, iri="http://e/other").end()
            spark.dataSource.register(EventSource)
            events = spark.read.format("oxiseq").option("url", address).option("stream", STREAM).load()
            rows = match(spark, QUERY, {"S": events}, buckets=2).collect()
            assert sorted((int(row.a), int(row.b)) for row in rows) == [(i, i + 1) for i in range(1, 30)]
    with pytest.raises(SourceError):
        list(place.read(Part(0, 1)))
