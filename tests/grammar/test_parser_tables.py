"""Parsers whose tables were kept on disk read what new ones read, and fail as they do; trees are as lark makes them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from grammar_queries import QUERIES
from lark import Lark, Token
from lark import Tree as LarkTree
from lark.exceptions import UnexpectedInput
from test_over_sparql import QUERIES as STORE_QUERIES
from test_over_sparql import UPDATES

from oxiseq.grammar import tables
from oxiseq.grammar.algebra import NOWHERE, Span
from oxiseq.grammar.parsing.sparql import Node, kind, where
from oxiseq.grammar.sizes import MOST_DEPTH, SizeError
from oxiseq.grammar.trees import Tree, TreeParser

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
        return TreeParser(parser).read(text)
    except UnexpectedInput as error:
        accepted = getattr(error, "accepts", None) or getattr(error, "allowed", None)
        return type(error), error.line, error.column, accepted


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where compiled code and tables go; none have come with a wheel."""
    monkeypatch.setattr(tables, "_brought", lambda grammar: tmp_path / "none")
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def built() -> Lark:
    """CEQL's parser, from its grammar."""
    return tables.build("ceql")


@pytest.fixture
def builds(built: Lark, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which parsers are built: the same one each time, since to build one takes a second."""
    named: list[str] = []

    def build(grammar: str) -> Lark:
        named.append(grammar)
        return built

    monkeypatch.setattr(tables, "build", build)
    return named


def test_kept_tables_read_what_new_ones_do(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new = tables.lalr("spaseq")
    (place,) = folder.rglob("*.lalr")
    whole = place.read_bytes()
    monkeypatch.delattr(tables, "build")  # what is kept is read, not computed anew
    kept = tables.lalr("spaseq")
    assert place.read_bytes() == whole
    with pytest.raises(SizeError):
        TreeParser(kept).read("SELECT * FROM STREAM S <urn:S> WHERE { SEQ" + "(" * (MOST_DEPTH + 1))
    assert [told(kept, text) for text in TEXTS] == [told(new, text) for text in TEXTS]


@pytest.mark.parametrize("spoiled", [b"", b"x", b"x" * 10_000])
def test_damaged_and_foreign_tables_are_made_anew(folder: Path, spoiled: bytes, built: Lark, builds: list[str]) -> None:
    tables.lalr("ceql")
    (place,) = folder.rglob("*.lalr")
    whole = place.read_bytes()
    for content in (spoiled, whole[:32] + spoiled, whole[:-100]):
        place.write_bytes(content)
        assert told(tables.lalr("ceql"), TEXTS[0]) == told(built, TEXTS[0])
        assert len(place.read_bytes()) > len(whole) // 2 and place.read_bytes() != content
    assert builds == ["ceql"] * 4


def test_tables_that_a_wheel_brings_are_read(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built: Lark, builds: list[str]
) -> None:
    monkeypatch.setattr(tables, "_brought", lambda grammar: tmp_path / f"{grammar}.lalr")
    monkeypatch.setattr(tables, "BUILT", ("ceql",))
    assert tables.ship(tmp_path) == [tmp_path / "ceql.lalr"]
    with monkeypatch.context() as scope:
        scope.delattr(tables, "build")
        assert told(tables.lalr("ceql"), TEXTS[0]) == told(built, TEXTS[0])
    (tmp_path / "ceql.lalr").write_bytes(b"of another grammar")
    assert told(tables.lalr("ceql"), TEXTS[0]) == told(built, TEXTS[0])
    assert builds == ["ceql"] * 2


def test_all_grammars_of_texts_are_brought() -> None:
    parts = {"clauses", "sparql"}
    assert {path.stem for path in tables._GRAMMARS.glob("*.lark")} - parts == set(tables.BUILT)


def test_nothing_is_written_where_python_writes_no_bytecode(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    tables.lalr("ceql")
    assert not list(folder.iterdir())


EXAMPLES = Path(__file__).parents[2] / "examples"
MADE_UP = [
    (
        "spaseq",
        "start",
        """PREFIX : <urn:>
        SELECT (MAX(?a + (?b) * -1) AS ?m) ((?x) AS ?y)
        FROM STREAM S <urn:S> WHERE { SEQ((A | (B & C))+ WITHIN 1 MINUTES; (D)?; E{2,}, F! : G;+)
        FILTER((?a) + 1 > (2) && ((?b)) || !(?c IN (1, (?d))) )
        DEFINE GPM A ON S { } DEFINE GPM B ON S { { } UNION { ?s :p/(:q|^:r)* (1 "a" [ :b :c ] ()) } . }
        DEFINE GPM C ON S { ?s a \'\'\'x
  y\'\'\'@en, "z"^^:t ; . # the end
          OPTIONAL { SELECT * { ?a ?b ?c } LIMIT 1 OFFSET 2 } VALUES (?a ?b) { (1 UNDEF) } } }""",
    ),
    (
        "ceql",
        "start",
        """VOCAB <urn:> SELECT MAX a, COUNT(*) AS n, SUM(b[x]) AS m FROM S, T -- and
        WHERE (A AS a OR (B+ AS b)); (C :+ FILTER C[NOT (x) + -1 * (y) > 2 AND (z = 'q')]) : D
        FILTER (a[x] AND (b[y == 1] OR b[z <> "u"])) PARTITION BY [x], [y] WITHIN 1 hour 30 minutes LIMIT 3""",
    ),
]


def corpus() -> list[tuple[str, str, str]]:
    """Grammar, start, text."""
    found = [*MADE_UP, *(("spaseq", "start", text) for text in QUERIES.values())]
    found += [("store", "query", text) for text in STORE_QUERIES] + [("store", "update", text) for text in UPDATES]
    for ending, grammar in {"spaseq": "spaseq", "ceql": "ceql", "epsparql": "epsparql", "rspql": "rsp"}.items():
        found += [(grammar, "start", path.read_text()) for path in sorted(EXAMPLES.rglob(f"*.{ending}"))]
    return found


def of_lark(node: LarkTree[Token] | Token) -> object:
    """Names, words and places."""
    if isinstance(node, Token):
        return node.type.replace("sparql__", ""), str(node), (node.start_pos, node.end_pos, node.line, node.column)
    meta = node.meta
    span = NOWHERE if meta.empty else Span(meta.start_pos, meta.end_pos, meta.line, meta.column)
    return str(node.data).replace("sparql__", ""), [of_lark(each) for each in node.children], span


def of_ours(node: Node) -> object:
    if isinstance(node, Tree):
        return kind(node), [of_ours(each) for each in node.children], where(node)
    return kind(node), str(node), (node.start_pos, node.end_pos, node.line, node.column)


def test_trees_are_larks() -> None:
    read = dict.fromkeys(("spaseq", "ceql", "epsparql", "rsp", "store"), 0)
    for grammar in read:
        lark = tables.build(grammar, propagate_positions=True)
        ours = TreeParser(lark)
        for start, text in ((start, text) for of, start, text in corpus() if of == grammar):
            try:
                expected = lark.parse(text, start=start)
            except UnexpectedInput as error:
                assert (grammar, start, text) not in MADE_UP, error
                with pytest.raises(type(error)):
                    ours.read(text, start)
                continue
            assert of_ours(ours.read(text, start)) == of_lark(expected), text
            read[grammar] += 1
    assert all(count > 2 for count in read.values()), read
