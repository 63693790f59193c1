"""Dirty sources: what is valid is in the store, what is not is in the quarantine."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from dirty_files import EX, NT, write_all
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Store

from oxiseq.engine.errors import KbError
from oxiseq.kb_loader import STATISTICS, load, open_kb


def data(store: Store) -> set[Quad]:
    return {q for q in store if q.graph_name != STATISTICS}


def records(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for file in sorted(folder.iterdir()) for line in file.read_text().splitlines()]


def test_all_formats_and_packings_load_and_faults_are_told(tmp_path: Path) -> None:
    report = load(write_all(tmp_path / "in"), tmp_path / "kb")
    assert (report.files, report.quarantined, report.duplicates) == (5, 4, 1)
    found = data(open_kb(tmp_path / "kb"))
    assert len(found) == report.stored == 8
    subjects = {q.subject.value for q in found if isinstance(q.subject, NamedNode)}
    assert subjects == {EX + name for name in ("a", "b", "x1", "q", "t")}
    told = records(tmp_path / "kb.quarantine")
    lines = {(Path(str(r["file"])).name, r["line"]) for r in told}
    assert lines == {("a.nt", 3), ("a.nt", 5), ("b.ttl.gz", 3), ("c.rdf", 4)}
    texts = {r["line"]: r["text"] for r in told if str(r["file"]).endswith("a.nt")}
    assert texts == {n: NT.decode().splitlines()[n - 1] for n in (3, 5)}
    assert all(r["reason"] for r in told)


def test_literals_have_the_stores_form(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_bytes(NT)
    load(tmp_path / "a.nt", tmp_path / "kb")
    objects = {q.object for q in data(open_kb(tmp_path / "kb"))}
    assert objects == {Literal(1), Literal("blank", language="en")}


def test_blank_nodes_of_two_files_differ_and_are_the_same_each_time(tmp_path: Path) -> None:
    for name in ("a.nt", "b.nt"):
        (tmp_path / name).write_text(f"_:x <{EX}p> _:y .\n_:x <{EX}q> _:y .\n")
    stores = []
    for place in ("one", "two"):
        load(str(tmp_path / "*.nt"), tmp_path / place)
        stores.append(data(open_kb(tmp_path / place)))
    assert stores[0] == stores[1]
    assert len(stores[0]) == 4
    assert len({q.subject for q in stores[0]}) == 2
    assert all(isinstance(q.subject, BlankNode) for q in stores[0])


def test_skolemised_blank_nodes_are_iris(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text(f"_:x <{EX}p> _:y .\n")
    load(tmp_path / "a.nt", tmp_path / "kb", skolemise=True)
    (quad,) = data(open_kb(tmp_path / "kb"))
    assert isinstance(quad.subject, NamedNode) and isinstance(quad.object, NamedNode)
    assert quad.subject != quad.object


def test_clean_lines_are_counted_without_comments_and_empty_lines(tmp_path: Path) -> None:
    line = '<a:a> <a:b> "%d # no comment" .\n'
    text = "# comment\n\n" + "".join(line % i for i in range(3)) + " \t\n" + line % 0 + (line % 9).rstrip("\n")
    (tmp_path / "a.nt").write_text(text)
    report = load(tmp_path / "a.nt", tmp_path / "kb")
    assert (report.read, report.stored, report.duplicates) == (5, 4, 1)


def test_zstandard_is_unpacked(tmp_path: Path) -> None:
    with pa.CompressedOutputStream(str(tmp_path / "a.nt.zst"), "zstd") as out:
        out.write(NT)
    assert load(tmp_path / "a.nt.zst", tmp_path / "kb").stored == 2


def test_a_file_cut_off_keeps_what_was_read(tmp_path: Path) -> None:
    write_all(tmp_path / "in")
    packed = (tmp_path / "in" / "b.ttl.gz").read_bytes()
    (tmp_path / "cut.ttl.gz").write_bytes(packed[:-12])
    report = load(tmp_path / "cut.ttl.gz", tmp_path / "kb")
    assert any("cannot be read on" in fault for fault in report.faults)


def test_strict_stops_and_leaves_the_store_marked(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_bytes(NT)
    with pytest.raises(KbError, match=r"a\.nt:3: "):
        load(tmp_path / "a.nt", tmp_path / "kb", strict=True)
    with pytest.raises(KbError, match="half loaded"):
        open_kb(tmp_path / "kb")


def test_the_graph_takes_the_default_graphs_statements_only(tmp_path: Path) -> None:
    load(write_all(tmp_path / "in"), tmp_path / "kb", graph=EX + "all")
    graphs = {str(q.graph_name) for q in data(open_kb(tmp_path / "kb"))}
    assert graphs == {f"<{EX}all>", f"<{EX}g>"}


def test_what_is_missing_or_unknown_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("")
    (tmp_path / "empty").mkdir()
    for given, message in [
        ("no.nt", "no such file"),
        ("a.txt", "unknown ending"),
        ("empty", "holds no RDF file"),
        ("*.nq", "no file matches"),
    ]:
        with pytest.raises(KbError, match=message):
            load(tmp_path / given, tmp_path / "kb")
