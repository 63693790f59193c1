"""Events written in any format are read back as they were."""

from __future__ import annotations

import gzip
import io
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from event_contents import Contents
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from profiles import drawn, in_the_gate
from pyoxigraph import Literal, NamedNode, Triple

from oxiseq.engine.errors import EventError
from oxiseq.engine.events import tables
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import decode_events, encode_events
from oxiseq.engine.events.open import event_format, open_events, write_events
from oxiseq.engine.events.tables import read_table, table_schema, write_table
from oxiseq.engine.events.time import FIRST_TIME, LAST_TIME
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.normal import XSD

NAMES = ["e.nq", "e.trig", "e.nq.gz", "e.trig.gz", "e.arrow", "e.feather", "e.parquet"]
if find_spec("pyjelly"):
    NAMES += ["e.jelly", "e.jelly.gz"]

text = st.text(st.characters(codec="utf-8"), max_size=5)
literals = st.one_of(
    st.builds(Literal, text),
    st.builds(lambda value, tag: Literal(value, language=tag), text, st.sampled_from(["en", "DE-ch"])),
    st.builds(
        lambda value, name: Literal(value, datatype=NamedNode(XSD + name)),
        st.one_of(text, st.integers().map(str), st.integers(-(2**70), 2**70).map("0{}.50".format)),
        st.sampled_from(["integer", "decimal", "double", "dateTime", "new"]),
    ),
)
iris = st.sampled_from([NamedNode(f"urn:{name}") for name in ("a", "b", "é", "p#q")])
labels = st.sampled_from(["_:x", "_:y", "_:z"])
triples = st.builds(
    lambda s, p, o: f"{s} {p} {o} .\n",
    st.one_of(iris, labels).map(str),
    iris.map(str),
    st.one_of(iris, labels, literals).map(str),
)
events = st.lists(st.tuples(st.integers(FIRST_TIME, LAST_TIME), st.lists(triples, max_size=5).map("".join)), max_size=6)


@pytest.mark.parametrize("name", NAMES)
@drawn(20, suppress_health_check=[HealthCheck.function_scoped_fixture])  # files are slow, and there are seven formats
@given(batches=st.lists(events, max_size=3))
def test_all_formats(tmp_path: Path, contents: Contents, name: str, batches: list[list[tuple[int, str]]]) -> None:
    terms, path = TermDictionary(), tmp_path / name
    written = [encode_events(batch, terms) for batch in batches]
    assert write_events(written, terms, path) == sum(map(len, written))
    other = TermDictionary()
    other.intern_all([NamedNode("urn:p#q"), Literal("in the way")])
    for reader_terms in (other, terms):
        back = contents(open_events(path, reader_terms), reader_terms)
        assert back == contents(written, terms)
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", in_the_gate({"e.trig", "e.nq.gz", "e.arrow", "e.parquet", "e.jelly.gz"}, NAMES))
def test_many_events_come_in_bounded_batches(tmp_path: Path, name: str) -> None:
    terms, path = TermDictionary(), tmp_path / name
    one = encode_events([(n, f"<urn:s> <urn:p> {n}, _:x .") for n in range(100)], terms)
    write_events([one] * 170, terms, path)
    reader = open_events(path, terms)
    assert reader.report.bytes_read == 0
    batches, progress = [], []
    for batch in reader:
        batches.append(batch)
        progress.append(reader.report.bytes_read)
    assert sum(map(len, batches)) == 17_000
    assert max(map(len, batches)) <= 8192
    assert progress == sorted(progress)
    assert reader.report.bytes_read == reader.report.bytes_total == path.stat().st_size
    assert (reader.report.events, reader.report.skipped) == (17_000, 0)
    assert len(np.unique(EventBatch.concat(batches).object)) == 100 + 17_000  # blank nodes are all fresh


def test_taken_events_with_the_same_blank_node_are_apart_in_the_file(tmp_path: Path) -> None:
    terms, path = TermDictionary(), tmp_path / "e.arrow"
    batch = encode_events([(1, "_:x <urn:p> _:y, _:x .")], terms).take(np.array([0, 0]))
    write_events([batch], terms, path)
    [back] = open_events(path, terms)
    x, _, again, _ = back.subject.tolist()
    assert x != again
    assert back.object[1] == x
    assert len(set(back.object.tolist())) == 4


def test_triple_terms_go_through_all_formats(tmp_path: Path, contents: Contents) -> None:
    a = NamedNode("urn:a")
    terms = TermDictionary()
    batch = encode_events([(1, [Triple(a, a, Triple(a, a, Literal("x")))])], terms)
    for name in NAMES:
        write_events([batch], terms, tmp_path / name)
        assert contents(open_events(tmp_path / name, terms), terms) == contents([batch], terms)


def test_another_time_predicate(tmp_path: Path, contents: Contents) -> None:
    terms, when = TermDictionary(), NamedNode("urn:when")
    batch = encode_events([(1, "<urn:a> <urn:p> 1 ."), (2, "")], terms)
    for name in ("e.nq", "e.trig"):
        write_events([batch], terms, tmp_path / name, when)
        assert contents(open_events(tmp_path / name, terms, when), terms) == contents([batch], terms)
        with pytest.raises(EventError, match="not an event's time"):
            list(open_events(tmp_path / name, terms))


def test_the_same_events_give_the_same_gzip_bytes(tmp_path: Path) -> None:
    terms = TermDictionary()
    batch = encode_events([(1, "<urn:a> <urn:p> 1 .")], terms)
    for name in ("e.nq.gz", "e.nq"):
        write_events([batch], terms, tmp_path / name)
    packed = (tmp_path / "e.nq.gz").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / "e.nq").read_bytes()
    write_events([batch], terms, tmp_path / "e.nq.gz")
    assert (tmp_path / "e.nq.gz").read_bytes() == packed


def test_a_failed_conversion_leaves_no_file(tmp_path: Path) -> None:
    source = tmp_path / "bad.nq"
    source.write_text("oops\n")
    for name in NAMES:
        terms = TermDictionary()
        with pytest.raises(EventError):
            write_events(open_events(source, terms), terms, tmp_path / name)
    assert [file.name for file in tmp_path.iterdir()] == ["bad.nq"]


# --- opening --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing.nq", "no such file"),
        ("missing.arrow", "no such file"),
        ("events.txt", "unknown ending .txt; known: .nq"),
        ("events", "unknown ending (none)"),
        ("events.arrow.gz", "unknown ending .arrow.gz"),
        ("events.rdf", "no named graphs"),
    ],
)
def test_files_that_cannot_be_opened(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(EventError) as caught:
        open_events(tmp_path / name, TermDictionary())
    assert reason in str(caught.value)
    assert name in str(caught.value)


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "e.nq").mkdir()
    with pytest.raises(EventError, match="cannot be read"):
        open_events(tmp_path / "e.nq", TermDictionary())


def test_the_format_can_be_told(tmp_path: Path, contents: Contents) -> None:
    terms, path = TermDictionary(), tmp_path / "events.data"
    batch = encode_events([(1, "<urn:a> <urn:p> 1 .")], terms)
    for chosen in ("nquads", "trig", "arrow", "parquet"):
        write_events([batch], terms, path, format=chosen)
        assert contents(open_events(path, terms, format=chosen), terms) == contents([batch], terms)


def test_names_and_formats() -> None:
    names = {"a.NQ": "nquads", "a.nq.gz": "nquads", "b.trig": "trig", "c.x.parquet": "parquet", "d.ipc": "arrow"}
    assert {name: event_format(name) for name in names} == names


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_file_has_no_events(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    assert list(open_events(tmp_path / name, TermDictionary())) == []


# --- tables that are something else ---------------------------------------------------------------


def save(path: Path, table: pa.Table) -> None:
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as file:
            file.write_table(table)


@pytest.mark.parametrize("name", ["e.arrow", "e.parquet"])
def test_files_that_are_no_event_tables(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    plain = pa.table({"time": [1]})
    newer = table_schema().empty_table().replace_schema_metadata({**table_schema().metadata, tables.VERSION_KEY: b"9"})
    columns = table_schema().empty_table().drop_columns(["blanks"])
    for table, reason in [(plain, "not one of events"), (newer, "version 9"), (columns, "columns")]:
        save(path, table)
        with pytest.raises(EventError, match=reason):
            list(open_events(path, TermDictionary()))
    for data in (b"<urn:a> <urn:p> 1 .", b"PAR1", b"ARROW1\0\0" + bytes(100)):
        path.write_bytes(data)
        with pytest.raises(EventError, match="not a readable"):
            list(open_events(path, TermDictionary()))


@pytest.mark.parametrize("name", ["e.arrow", "e.parquet"])
def test_a_cut_table_is_an_error(tmp_path: Path, name: str) -> None:
    terms, path = TermDictionary(), tmp_path / name
    batch = encode_events([(n, f"<urn:s> <urn:p> {n} .") for n in range(1000)], terms)
    write_events([batch], terms, path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(EventError, match="not a readable"):
        list(open_events(path, terms))


DAMAGES = {
    "a code beyond the terms": ({"terms": ["<urn:p>"], "blanks": 0, "triples": (1, 1, 2)}, "beyond the dictionary"),
    "a code of a later row": ({"terms": [], "blanks": 0, "triples": (1, 1, 1)}, "beyond the dictionary"),
    "code 0": ({"terms": ["<urn:p>"], "blanks": 0, "triples": (0, 1, 1)}, "a code is 0"),
    "a blank node too many": ({"terms": ["<urn:p>"], "blanks": 1, "triples": (-1, 1, -2)}, "blank nodes"),
    "negative count": ({"terms": ["<urn:p>"], "blanks": -1, "triples": (1, 1, 1)}, "negative"),
    "a text that is no term": ({"terms": ["oops"], "blanks": 0, "triples": (1, 1, 1)}, "not a term"),
    "two terms in a text": ({"terms": ["<urn:p> .\n<urn:s> <urn:p> 'x'"], "blanks": 0, "triples": (1, 1, 1)}, "term"),
    "a blank node as text": ({"terms": ["_:x"], "blanks": 0, "triples": (1, 1, 1)}, "blank node"),
    "a literal as predicate": ({"terms": ["<urn:p>", '"x"'], "blanks": 0, "triples": (1, 2, 1)}, "predicate"),
    "a literal as subject": ({"terms": ["<urn:p>", '"x"'], "blanks": 0, "triples": (2, 1, 1)}, "subject"),
    "a null": ({"terms": ["<urn:p>"], "blanks": None, "triples": (1, 1, 1)}, "missing"),
    "a null code": ({"terms": ["<urn:p>"], "blanks": 0, "triples": (1, 1, None)}, "missing"),
}


@pytest.mark.parametrize(("row", "reason"), DAMAGES.values(), ids=DAMAGES)
def test_damaged_content_is_an_error(tmp_path: Path, row: dict[str, Any], reason: str) -> None:
    subject, predicate, object_ = row["triples"]
    triple = {"subject": subject, "predicate": predicate, "object": object_}
    loose = pa.schema(
        [
            pa.field("time", pa.timestamp("us", tz="UTC")),
            pa.field("terms", pa.list_(pa.string())),
            pa.field("blanks", pa.int32()),
            pa.field("triples", pa.list_(pa.struct([(name, pa.int32()) for name in triple]))),
        ],
        metadata=table_schema().metadata,
    )
    table = pa.Table.from_pylist([{**row, "time": 0, "triples": [triple]}], schema=loose)
    save(tmp_path / "e.arrow", table)
    with pytest.raises(EventError, match=reason):
        list(read_table(tmp_path / "e.arrow", TermDictionary()))


def whole(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(io.BytesIO(source.read())).read_all()


def test_each_batch_of_a_table_holds_its_terms_once(tmp_path: Path) -> None:
    terms, path = TermDictionary(), tmp_path / "e.arrow"
    batches = [encode_events([(n, '<urn:s> <urn:p> "x", "y" .')] * 3, terms) for n in range(2)]
    write_table(batches, terms, path)
    texts = ["<urn:s>", "<urn:p>", '"x"', '"y"']
    assert whole(path).column("terms").to_pylist() == [texts, [], []] * 2


def test_a_dictionary_may_begin_anywhere(tmp_path: Path) -> None:
    """Rows are read the same however the file is cut into batches."""
    terms, path = TermDictionary(), tmp_path / "e.arrow"
    batches = [
        encode_events([(10 * i + n, f"<urn:s{i}> <urn:p> {n}, {i} .") for n in range(4)], terms) for i in range(5)
    ]
    write_table(batches, terms, path)
    table = whole(path).combine_chunks()
    expected = [event for batch in batches for event in decode_events(batch, terms)]
    for size in (1, 3, 5, 20):
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as file:
            file.write_table(table, max_chunksize=size)
        again = TermDictionary()
        read = [event for batch in read_table(path, again) for event in decode_events(batch, again)]
        assert read == expected
