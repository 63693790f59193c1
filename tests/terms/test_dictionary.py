"""Ids, growth, caches and what cannot be interned."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from oxiseq.engine import kinds
from oxiseq.engine.terms import dictionary
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.normal import XSD
from oxiseq.engine.terms.value import literal_value

A = NamedNode("http://example.org/a")


def integer(lexical: str) -> Literal:
    return Literal(lexical, datatype=NamedNode(XSD + "integer"))


def test_the_first_term_has_id_1_and_0_is_unbound() -> None:
    terms = TermDictionary()
    assert terms.intern(A) == 1
    assert len(terms) == 2
    for wrong in (0, 2, -1):
        with pytest.raises(KeyError):
            terms.term(wrong)
    assert terms.columns.kind[0] == kinds.NONE


def test_equal_values_in_different_texts_are_one_term() -> None:
    terms = TermDictionary()
    known = terms.intern(integer("1"))
    assert terms.intern(integer("01")) == known
    assert terms.intern(Literal("+1", datatype=NamedNode(XSD + "byte"))) == known
    assert terms.find(integer("0001")) == known
    assert terms.text(known) == f'"1"^^<{XSD}integer>'
    assert terms.intern(Literal("x", language="EN")) == terms.intern(Literal("x", language="en"))


def test_terms_of_different_kinds_are_apart() -> None:
    terms = TermDictionary()
    same_text = [
        NamedNode("urn:1"),
        Literal("urn:1"),
        Literal("1"),
        integer("1"),
        Literal("1", datatype=NamedNode(XSD + "decimal")),
        Literal("1", language="en"),
        Literal("1", language="de"),
        Literal(""),
    ]
    assert len({terms.intern(term) for term in same_text}) == len(same_text)
    assert [terms.term(terms.intern(term)) for term in same_text] == same_text


def test_find_adds_nothing() -> None:
    terms = TermDictionary()
    assert terms.find(A) == 0
    assert terms.find(integer("01")) == 0
    assert terms.find(BlankNode("x")) == 0
    assert len(terms) == 1


def test_blank_nodes_are_fresh_and_have_a_label() -> None:
    terms = TermDictionary()
    first, second = terms.blank(), terms.blank()
    assert first != second
    assert terms.text(first) == f"_:b{first}"
    assert terms.columns.kind[second] == kinds.BLANK
    many = terms.blanks(100)
    assert len(set(many.tolist()) | {first, second}) == 102
    assert (terms.columns.kind[many] == kinds.BLANK).all()
    assert len({terms.text(int(i)) for i in many}) == 100


def test_what_cannot_be_interned() -> None:
    terms = TermDictionary()
    with pytest.raises(ValueError, match="blank node"):
        terms.intern(BlankNode("x"))
    with pytest.raises(ValueError, match="blank node"):
        terms.intern(Triple(BlankNode("x"), A, A))
    with pytest.raises(TypeError):
        terms.intern("http://example.org/a")  # type: ignore[arg-type]  # the wrong type is the point
    assert len(terms) == 1


def test_a_triple_term_is_one_opaque_term_in_normal_form() -> None:
    terms = TermDictionary()
    known = terms.intern(Triple(A, A, integer("01")))
    assert terms.intern(Triple(A, A, integer("1"))) == known
    assert terms.columns.kind[known] == kinds.OTHER


@given(st.lists(st.integers(0, 200), max_size=300))
def test_columns_grow_and_keep_their_content(numbers: list[int]) -> None:
    terms = TermDictionary(capacity=1)
    ids = [terms.intern(integer(str(number))) for number in numbers]
    columns = terms.columns
    assert len(columns.kind) >= len(terms)
    for term_id, number in zip(ids, numbers, strict=True):
        assert columns.exact[term_id] == number
        assert columns.number[term_id] == number
    for column in columns:
        assert column.flags.c_contiguous
        assert column.flags.writeable
    assert len(terms) == len(set(numbers)) + 1


def test_the_columns_hold_the_values() -> None:
    terms = TermDictionary()
    texts = {"dateTime": "1970-01-01T00:00:00.0000019", "decimal": "-0.5", "boolean": "false", "double": "-0"}
    for name, text in texts.items():
        literal = Literal(text, datatype=NamedNode(XSD + name))
        term_id = terms.intern(literal)
        row = tuple(column[term_id] for column in terms.columns)
        assert row == (value := literal_value(literal))
        assert str(row[1]) == str(value.number)


def test_full_caches_are_emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dictionary, "CACHE_SIZE", 4)
    terms = TermDictionary()
    ids = [terms.intern(integer(f"0{number}")) for number in range(50)]
    texts = [terms.intern_written(f'"0{number}"^^<{XSD}integer>'.encode()) for number in range(50)]
    assert ids == texts == [terms.find(integer(str(number))) for number in range(50)]


@pytest.mark.parametrize("room", [4, 1 << 17])
def test_many_terms_at_once_are_those_one_by_one(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all kinds, some twice, in forms that are not normal, with escapes; few and many; again when known."""
    monkeypatch.setattr(dictionary, "CACHE_SIZE", room)
    numbers = [integer(f"{'0' * (n % 3)}{n % 17}") for n in range(60)]
    others = [
        A,
        Literal('q"uo\n\\te\u0001é'),
        Literal("x", language="EN"),
        Literal("1.50", datatype=NamedNode(XSD + "double")),
    ]
    every = [*numbers, *others, Triple(A, A, integer("01")), *others]
    terms, plain = TermDictionary(), TermDictionary()
    for many in (every[:3], every, every, []):
        ids = terms.intern_all(iter(many))
        assert [terms.text(i) for i in ids.tolist()] == [plain.text(plain.intern(term)) for term in many]
        assert ids.tolist() == [terms.intern(term) for term in many]
    assert terms.live == plain.live
    with pytest.raises(ValueError, match="blank"):
        terms.intern_all([integer(str(n)) for n in range(100, 120)] + [BlankNode("b")])


@pytest.mark.parametrize("text", ["", "x", "_:b", "<a>", "<urn:a> <urn:b>", "<urn:a> . <urn:a> <urn:a> <urn:a>"])
def test_texts_that_are_not_one_term(text: str) -> None:
    with pytest.raises(ValueError, match=r"N-Triples|blank"):
        TermDictionary().intern_written(text.encode())


def test_a_text_is_read_back_as_its_term() -> None:
    terms = TermDictionary()
    for term in (A, Literal('q"uo\n\\te\u0001é'), Literal("x", language="en-gb"), integer("-5")):
        known = terms.intern(term)
        assert terms.intern_written(terms.text(known).encode()) == known


def test_texts_of_every_length_are_found_again() -> None:
    """LLVM once compiled the comparison of eight bytes wrongly, and only in a kernel that came from the disk."""
    terms = TermDictionary()
    written = [f"<urn:{letter * size}>".encode() for size in range(60) for letter in "ab"]
    known = [terms.intern_written(token) for token in written]
    length = len(terms)
    assert [terms.intern_written(token) for token in written] == known
    assert len(terms) == length
