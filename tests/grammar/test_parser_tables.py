"""Parsers whose tables were kept on disk read what new ones read, and fail as they do; trees are as lark makes them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import lark
import pytest
from grammar_queries import QUERIES
from lark import Lark, Token
from lark import Tree as LarkTree
from lark.exceptions import UnexpectedInput
from test_over_sparql import QUERIES as STORE_QUERIES
from test_over_sparql import UPDATES

from oxiseq.grammar import lalr, tables
from oxiseq.grammar.algebra import NOWHERE, Span
from oxiseq.grammar.parsing.sparql import Node, where
from oxiseq.grammar.trees import MOST_DEPTH, SizeError, Tree, TreeParser, UnreadableError, tree_parser

TEXTS = (
    "SELECT * FROM STREAM S <urn:S> WHERE { SEQ(A; B+) DEFINE GPM A ON S { ?s ?p ?o FILTER(?o > 1 || REGEX(?o, 'a')) } "
    "DEFINE GPM B ON S { ?s ?p ?o OPTIONAL { ?o ?p ?q } } }",
    "SELECT * FROM STREAM S <urn:S> WHERE { SEQ(A; DEFINE",
    "SELECT * FROM STREAM S WHERE",
    "SELECT $ % &",
    "",
)
SPOILED = b"", b"x", b"x" * 10_000


def parser_by(lark: Lark) -> TreeParser:
    """Of tables that no file has held."""
    return TreeParser(tables.ParseTables(lalr.packed(lark)), partial(lalr.unexpected, lark))


def of_files(grammar: str) -> TreeParser:
    """As a new process has it."""
    tree_parser.cache_clear()
    lalr.parser_of.cache_clear()
    return tree_parser(grammar)


def told(parser: TreeParser, text: str) -> object:
    """What a parser says of a text."""
    try:
        return parser.read(text)
    except UnreadableError as refused:
        error = refused.unexpected
        accepted = getattr(error, "accepts", None) or getattr(error, "allowed", None)
        return type(error), error.line, error.column, accepted


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where compiled code and tables go; none have come with a wheel."""
    monkeypatch.setattr(tables, "brought", lambda grammar: tmp_path / "none")
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    yield tmp_path
    tree_parser.cache_clear()
    lalr.parser_of.cache_clear()


@pytest.fixture(scope="module")
def built() -> Lark:
    """CEQL's parser, from its grammar."""
    return lalr.build("ceql")


@pytest.fixture
def builds(built: Lark, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which parsers are built: the same one each time, since to build one takes a second."""
    named: list[str] = []

    def build(grammar: str) -> Lark:
        named.append(grammar)
        return built

    monkeypatch.setattr(lalr, "build", build)
    return named


def test_kept_tables_read_what_new_ones_do(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new = of_files("spaseq")
    (place,) = folder.rglob("*.lalr")
    whole = place.read_bytes()
    by_new = [told(new, text) for text in TEXTS]
    monkeypatch.delattr(lalr, "build")  # what is kept is read, not computed anew
    kept = of_files("spaseq")
    assert place.read_bytes() == whole
    with pytest.raises(SizeError):
        kept.read("SELECT * FROM STREAM S <urn:S> WHERE { SEQ" + "(" * (MOST_DEPTH + 1))
    assert [told(kept, text) for text in TEXTS] == by_new


def test_damaged_and_foreign_tables_are_made_anew(folder: Path, built: Lark, builds: list[str]) -> None:
    of_files("ceql")
    (place,) = folder.rglob("*.lalr")
    whole, expected = place.read_bytes(), [told(parser_by(built), text) for text in TEXTS]
    key = tables.DIGEST
    size = int.from_bytes(whole[2 * key : 2 * key + tables.WORD], "little")
    damaged = [whole[: size // 2], whole[:size] + b"x" + whole[size + 1 :]]
    for content in (*damaged, *[kept + spoiled for kept in (b"", whole[:key]) for spoiled in SPOILED]):
        place.write_bytes(content)
        assert [told(of_files("ceql"), text) for text in TEXTS] == expected
        assert place.read_bytes() == whole
    assert builds == ["ceql"] * 9


def test_damaged_or_foreign_tables_of_lark_are_made_anew(
    folder: Path, built: Lark, builds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are behind ours: texts are read without them, and only what is not of the language asks for them."""
    of_files("ceql")
    (place,) = folder.rglob("*.lalr")
    whole, expected = place.read_bytes(), told(parser_by(built), TEXTS[0])
    place.write_bytes(whole[:-100])
    parser = of_files("ceql")
    assert builds == ["ceql"]
    assert told(parser, TEXTS[0]) == expected
    assert (builds, place.read_bytes()) == (["ceql"] * 2, whole)
    monkeypatch.setattr(lark, "__version__", "0.0")
    assert told(of_files("ceql"), TEXTS[0]) == expected
    assert builds == ["ceql"] * 3


def test_tables_that_a_wheel_brings_are_read(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built: Lark, builds: list[str]
) -> None:
    monkeypatch.setattr(tables, "brought", lambda grammar: tmp_path / f"{grammar}.lalr")
    monkeypatch.setattr(lalr, "BUILT", ("ceql",))
    expected = told(parser_by(built), TEXTS[0])
    assert lalr.ship(tmp_path) == [tmp_path / "ceql.lalr"]
    with monkeypatch.context() as scope:
        scope.delattr(lalr, "build")
        assert told(of_files("ceql"), TEXTS[0]) == expected
    (tmp_path / "ceql.lalr").write_bytes(b"of another grammar")
    assert told(of_files("ceql"), TEXTS[0]) == expected
    assert builds == ["ceql"] * 2


def test_all_grammars_of_texts_are_brought() -> None:
    parts = {"clauses", "sparql"}
    assert {path.stem for path in tables.GRAMMARS.glob("*.lark")} - parts == set(lalr.BUILT)


def test_nothing_is_written_where_python_writes_no_bytecode(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    of_files("ceql")
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
        return node.kind, [of_ours(each) for each in node.children], where(node)
    return node.kind, str(node), (node.start_pos, node.end_pos, node.line, node.column)


def test_trees_are_larks() -> None:
    read = dict.fromkeys(("spaseq", "ceql", "epsparql", "rsp", "store"), 0)
    for grammar in read:
        by_lark = lalr.build(grammar, propagate_positions=True)
        ours = parser_by(by_lark)
        for start, text in ((start, text) for of, start, text in corpus() if of == grammar):
            try:
                expected = by_lark.parse(text, start=start)
            except UnexpectedInput as error:
                assert (grammar, start, text) not in MADE_UP, error
                with pytest.raises(UnreadableError) as refused:
                    ours.read(text, start)
                assert type(refused.value.unexpected) is type(error)
                continue
            assert of_ours(ours.read(text, start)) == of_lark(expected), text
            read[grammar] += 1
    assert all(count > 2 for count in read.values()), read
