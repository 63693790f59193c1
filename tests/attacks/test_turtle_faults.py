"""One bad statement of Turtle or TriG takes no other with it and is told with its line; many take little time."""

from __future__ import annotations

import json
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import in_the_gate
from pyoxigraph import NamedNode, RdfFormat
from turtle_texts import FAULTS, HEAD, pieces, read, same, strictly

from oxiseq.engine.turtle import valid
from oxiseq.kb_loader import STATISTICS, load, open_kb

FORMATS = (RdfFormat.TURTLE, RdfFormat.TRIG)


def lines(first: int, last: int) -> str:
    return "".join(f"ex:s{i} ex:p {i} .\n" for i in range(first, last))


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("format", FORMATS)
def test_39_valid_lines_and_a_fault_are_39_statements_and_its_line(fault: str, format: RdfFormat) -> None:
    for at in (0, 20, 39):
        quads, flaws = read(HEAD + lines(0, at) + fault + lines(at, 39), format)
        assert sorted(int(q.object.value) for q in quads) == list(range(39))  # type: ignore[union-attr]
        assert len(flaws) == 1
        assert flaws[0].line in range(at + 2, at + 2 + fault.count("\n"))
        assert flaws[0].text.strip() == fault.strip()


@given(st.data())
def test_valid_text_is_read_as_pyoxigraph_reads_it(data: st.DataObject) -> None:
    graphs = data.draw(st.booleans())
    text = "".join(data.draw(pieces(graphs=graphs)))
    format = RdfFormat.TRIG if graphs else RdfFormat.TURTLE
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(valid, "_BLOCK", data.draw(st.sampled_from([7, 50, 300, 1 << 22])))
        patch.setattr(valid, "_QUICK", data.draw(st.sampled_from([1, 4, 1 << 14])))
        quads, flaws = read(text, format)
    assert flaws == []
    assert same(quads, strictly(text, format))


@given(st.data())
def test_a_fault_anywhere_between_statements_costs_none_of_them(data: st.DataObject) -> None:
    graphs = data.draw(st.booleans())
    statements = data.draw(pieces(graphs=graphs))
    format = RdfFormat.TRIG if graphs else RdfFormat.TURTLE
    at = data.draw(st.integers(1, len(statements)))
    fault = data.draw(st.sampled_from(FAULTS))
    text = "".join([*statements[:at], fault, *statements[at:]])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(valid, "_BLOCK", data.draw(st.sampled_from([7, 300, 1 << 22])))
        quads, flaws = read(text, format)
    assert same(quads, strictly("".join(statements), format))
    first = "".join(statements[:at]).count("\n") + 1
    assert [flaw.line in range(first, first + fault.count("\n")) for flaw in flaws] == [True]


@pytest.mark.parametrize("fault", [f for f in FAULTS if "{" not in f and "@prefix" not in f and ";" not in f])
def test_a_fault_within_a_graph_leaves_the_graph_open(fault: str) -> None:
    text = f"{HEAD}ex:g {{\n  ex:a ex:p 1 .\n  {fault}  ex:b ex:p 2 .\n}}\nex:c ex:p 3 ."
    quads, flaws = read(text, RdfFormat.TRIG)
    found = sorted((str(q.object.value), str(q.graph_name)) for q in quads)  # type: ignore[union-attr]
    assert found == [("1", "<http://e/g>"), ("2", "<http://e/g>"), ("3", "DEFAULT")]
    assert len(flaws) == 1 and flaws[0].line in (4, 5, 6)


def test_braces_that_do_not_fit() -> None:
    graph = "ex:g { ex:a ex:p 1 .\n"
    for text, lines_, found in [
        (graph + "ex:h {\n ex:b ex:p 2 }", [3], {("1", "g"), ("2", "h")}),  # "}" is missing
        (graph, [2], {("1", "g")}),
        ("}\nex:a ex:p 1 .", [2], {("1", "")}),
        ("no:g {\nex:a ex:p 1 .\nex:a ex:p 2 }\nex:a ex:p 3 .", [2], {("3", "")}),  # nobody knows the graph
        ("ex:a ex:p 1 {\nex:a ex:p 2 .", [2], {("2", "")}),
        ("ex:a ex:p 1\n" + graph + "}", [2], {("1", "g")}),  # a dot is missing
    ]:
        quads, flaws = read(HEAD + text, RdfFormat.TRIG)
        names = {
            (q.object.value, q.graph_name.value[9:] if isinstance(q.graph_name, NamedNode) else "")  # type: ignore[union-attr]
            for q in quads
        }
        assert ([flaw.line for flaw in flaws], names) == (lines_, found), text


def test_statements_within_a_long_literal_are_not_taken_for_some() -> None:
    text = HEAD + 'ex:a ex:p ] , """\nex:x ex:y ex:z .\n""" .\nex:a ex:p """\nex:x ex:y ex:z .\n""" ] .\n' + lines(0, 1)
    quads, flaws = read(text)
    assert [str(q.subject) for q in quads] == ["<http://e/s0>"]
    assert [flaw.line for flaw in flaws] == [2, 7]


def test_prefixes_are_those_that_hold_at_the_place() -> None:
    text = HEAD + "ex:a ex:p ] .\n@prefix ex: <http://f/> .\nex:a ex:p ] .\nex:a ex:p ex:b .\n"
    quads, flaws = read(text)
    assert [str(q.subject) for q in quads] == ["<http://f/a>"]
    assert [flaw.line for flaw in flaws] == [2, 4]


REPEATED = (
    "ex:a ex:q ] .\n",
    'ex:a ex:q """v .\n',
    "ex:a ex:q 1\n",
    "[ \n",
    "{\n",
    "}\n",
    "ex:g {\n",
    "no:g {\n",
    ". ",
    "ex:a ex:b {\n ex:c ex:d ex:e .\n",
    "ex:a ex:q ]\r",
    "ex:a ex:b ex:c .\nno:a ex:b ] .\n",
    "a" * 500 + " ] ",
)


@pytest.mark.parametrize("fault", in_the_gate(REPEATED[::2], REPEATED))
def test_many_faults_take_time_that_grows_with_their_number(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(valid, "_PATIENCE", 1 << 15)  # so that this small text is more than there is patience for
    monkeypatch.setattr(valid, "_BLOCK", 1 << 13)
    spent = []
    for size in (1 << 13, 1 << 15):
        begun = process_time()
        _, flaws = read(HEAD + fault * (size // len(fault)), RdfFormat.TRIG)
        spent.append(process_time() - begun)
        assert flaws
    assert spent[1] < 10 * spent[0] + 0.2, "quadratic: 16 times"


def test_a_word_as_long_as_the_file() -> None:
    begun = process_time()
    _, flaws = read(HEAD + "x" * 2_000_000 + "\n" + lines(0, 2))
    assert process_time() - begun < 5
    assert [flaw.line for flaw in flaws] == [2]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.ttl", HEAD + lines(0, 20) + 'ex:a ex:q "v"@-x .\n' + lines(20, 39)),
        ("a.trig", HEAD + "ex:g {\n" + lines(0, 19) + "ex:a ex:q ] .\n" + lines(19, 39) + "}\n"),
    ],
)
def test_the_loader_stores_them_and_keeps_the_fault(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    report = load(tmp_path / name, tmp_path / "kb")
    assert (report.stored, report.quarantined) == (39, 1)
    assert len([q for q in open_kb(tmp_path / "kb") if q.graph_name != STATISTICS]) == 39
    (file,) = (tmp_path / "kb.quarantine").iterdir()
    told = json.loads(file.read_text())
    assert (told["line"], told["text"]) == (22, text.splitlines()[21])


XML = """<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">
<rdf:Description rdf:about="http://e/a"><e:p>1</e:p></rdf:Description>

%s
<rdf:Description rdf:about="http://e/b"><e:p>1</e:p></rdf:Description>
</rdf:RDF>
"""


@pytest.mark.parametrize(
    "fault",
    [
        "</e:other>",
        '<rdf:Description rdf:about="a b"><e:p>1</e:p></rdf:Description>',
        "<u:T/>",
        "&none;",
        "<rdf:li/>",
        '<e:T><e:p rdf:resource="http://[x"/></e:T>',
        '<e:T e:a="1" e:a="2"/>',
        "<e:T><e:p>1<e:T/></e:p></e:T>",
        "x" * 70_000,
    ],
)
def test_a_fault_of_rdf_xml_has_its_line(fault: str, tmp_path: Path) -> None:
    (tmp_path / "a.rdf").write_text(XML % fault)
    report = load(tmp_path / "a.rdf", tmp_path / "kb")
    assert report.stored >= 1 and report.quarantined == 1
    assert report.faults[0].startswith(f"{tmp_path / 'a.rdf'}:5: ")
    assert "the rest of the file is left out" in report.faults[0]
