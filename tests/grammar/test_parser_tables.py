"""Parsers whose tables were kept on disk read what new ones read, and fail as they do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from lark import Lark
from lark.exceptions import UnexpectedInput

from oxiseq.grammar import tables
from oxiseq.grammar.sizes import MOST_DEPTH, SizeError, Sizes

TEXTS = (
    "SELECT * FROM STREAM S <urn:S> WHERE { SEQ(A; B+) DEFINE GPM A ON S { ?s ?p ?o FILTER(?o > 1 || REGEX(?o, 'a')) } "
    "DEFINE GPM B ON S { ?s ?p ?o OPTIONAL { ?o ?p ?q } } }",
    "SELECT * FROM STREAM S <urn:S> WHERE { SEQ(A; DEFINE",
    "SELECT * FROM STREAM S WHERE",
    "SELECT $ % &",
    "",
)


def told(parser: Lark, text: str) -> object:
    """What a parser says of a text."""
    try:
        return parser.parse(text)
    except UnexpectedInput as error:
        accepted = getattr(error, "accepts", None) or getattr(error, "allowed", None)
        return type(error), error.line, error.column, accepted


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where compiled code and tables go."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def built() -> Lark:
    """CEQL's parser, from its grammar."""
    return tables.build("ceql")


def test_kept_tables_read_what_new_ones_do(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new = tables.lalr("spaseq")
    (place,) = folder.rglob("*.lalr")
    whole = place.read_bytes()
    monkeypatch.delattr(tables, "build")  # what is kept is read, not computed anew
    kept = tables.lalr("spaseq")
    assert place.read_bytes() == whole
    assert kept.options.propagate_positions and isinstance(kept.options.postlex, Sizes)
    with pytest.raises(SizeError):
        kept.parse("SELECT * FROM STREAM S <urn:S> WHERE { SEQ" + "(" * (MOST_DEPTH + 1))
    assert [told(kept, text) for text in TEXTS] == [told(new, text) for text in TEXTS]


@pytest.mark.parametrize("spoiled", [b"", b"x", b"x" * 10_000])
def test_damaged_and_foreign_tables_are_made_anew(folder: Path, spoiled: bytes, built: Lark) -> None:
    tables.lalr("ceql")
    (place,) = folder.rglob("*.lalr")
    whole = place.read_bytes()
    for content in (spoiled, whole[:32] + spoiled, whole[:-100]):
        place.write_bytes(content)
        assert told(tables.lalr("ceql"), TEXTS[0]) == told(built, TEXTS[0])
        assert len(place.read_bytes()) > len(whole) // 2 and place.read_bytes() != content


def test_nothing_is_written_where_python_writes_no_bytecode(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    tables.lalr("ceql")
    assert not list(folder.iterdir())
