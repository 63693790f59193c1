"""Turtle and TriG texts: valid statements of all kinds, and what may be wrong in between."""

from __future__ import annotations

from io import BytesIO

from hypothesis import strategies as st
from pyoxigraph import CanonicalizationAlgorithm, Dataset, Quad, RdfFormat, parse

from oxiseq.engine.turtle import Flaw, valid_statements

BASE = "http://base.example/"
HEAD = "@prefix ex: <http://e/> .\n"
FAULTS = (
    'ex:a ex:q "v"@-x .\n',
    "] .\n",
    "ex:a ex:q ] .\n",
    'ex:a ex:q "unclosed .\n',
    "[ ex:q 1 .\n",
    "ex:a ex:q .\n",
    "ex:a ex:q <a b> .\n",
    "no:x ex:q 1 .\n",
    "ex:a ex:q ( 1 2 .\n",
    "ex:a ex:q <http://open .\n",
    'ex:a ex:q "\\z" .\n',
    'ex:a "p" 1 .\n',
    "@prefix ex2 <http://x/> .\n",
    'ex:a ex:q "x"^^bad .\n',
    "ex:a ex:q 'v .\n",
    'ex:a ex:q """long\n',
    "ex:a ex:q '''long .\n",
    "ex:a ex:q\n",
    "ex:a ex:q { 1 } .\n",
    '"x" ex:q 1 .\n',
    "ex:a ex:q [ ex:b 1\n",
    "ex:a ex:p 1 ;\n  ex:q bad! ;\n  ex:r 1 .\n",
    "ex:a .\n",
)
"""Each is one fault, wherever it stands between statements."""
STATEMENTS = (
    "ex:s{i} ex:p {i} .\n",
    'ex:s{i} ex:p {i}.5 ; ex:q "a . b" .\n',
    "ex:s{i} a ex:T.\nex:t{i} ex:p <http://x/#a.b?c=.>.\n",
    'ex:s{i} ex:p """many\nex:x ex:y ex:z .\n lines""" ;\n   ex:q 2 .\n',
    "@prefix p: <http://p{i}/> .\np:a p:b p:c .\n",
    '[ ex:p {i} ; ex:q [ ex:r ( 1 2.5 [ ex:z "]" ] ) ] ] ex:p ex:o .\n',
    "PREFIX q: <http://q{i}/>\nq:a q:b q:c .\n",
    'ex:s{i} ex:l ( ex:a\n ex:b "c"@en "d"^^ex:t ) .\n',
    "_:b{i} ex:p '''it's \" long\n\n.\n''' .\n",
    '# a comment . {{ " \nex:s{i} ex:c ex:d . # tail "\n',
    "ex:s{i} ex:p\n  ex:o1 ,\n  ex:o2 ;\n  ex:r true .\n",
    "ex:s{i} ex:p ex:a\\.b\\#c .\n",
    "ex:s{i} ex:p -1.e5 , .5 , 7 .\n",
    '<s{i}> <p> "" , \'\' , "\\"" .\n',
)


def read(text: str | bytes, format: RdfFormat = RdfFormat.TURTLE) -> tuple[list[Quad], list[Flaw]]:
    """The statements and flaws of a text."""
    flaws: list[Flaw] = []
    content = BytesIO(text.encode() if isinstance(text, str) else text)
    return [q for quads in valid_statements(content, format, BASE, flaws.append) for q in quads], flaws


def same(left: list[Quad], right: list[Quad]) -> bool:
    """Whether the statements are the same but for the names of blank nodes."""
    one, other = Dataset(left), Dataset(right)
    for dataset in (one, other):
        dataset.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    return set(one) == set(other)


def strictly(text: str, format: RdfFormat) -> list[Quad]:
    """What pyoxigraph reads of a text without faults."""
    return list(parse(text.encode(), format=format, base_iri=BASE))


@st.composite
def pieces(draw: st.DrawFn, *, graphs: bool) -> list[str]:
    """Statements, and graphs of them: between any two of them a fault may stand."""
    found = [HEAD]
    for i, kind in enumerate(draw(st.lists(st.integers(0, len(STATEMENTS) - 1), max_size=20))):
        statement = STATEMENTS[kind].format(i=i)
        if graphs and "refix" not in statement.lower() and draw(st.integers(0, 3)) == 0:
            name = draw(st.sampled_from(["ex:g", "GRAPH ex:h", "[]", "_:g", "graph\n<g>"]))
            last = statement.removesuffix(" .\n") + "\n" if draw(st.booleans()) else statement
            statement = f"{name} {{\n  ex:g ex:n {i} .\n{statement}{last}}}\n"
        found.append(statement)
    return found
