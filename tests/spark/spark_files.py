"""Sources of every format, some packed, some dirty, with duplicates, blank nodes and a schema; and how to compare."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyoxigraph import CanonicalizationAlgorithm, Dataset, Quad, Store

from oxiseq.kb_loader import STATISTICS

EX = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
SUB = "http://www.w3.org/2000/01/rdf-schema#sub"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
BAD = [
    "oops",
    f"<{EX}a> <{EX}p> .",
    f'<{EX}a> <{EX}p> "open .',
    f"<{EX}a b> <{EX}p> <{EX}c> .",
    f"<{EX}a> <{EX}p> <{EX}c>",
]
MAPPING = f"""PREFIX : <{EX}>
CONSTRUCT {{ ?who a ?class ; :name ?name ; :knows [ :age ?age ] }}
WHERE {{ BIND(IRI(CONCAT(STR(:), ?id)) AS ?who) BIND(IRI(CONCAT(STR(:), ?kind)) AS ?class) }}"""
SCHEMA = f"""@prefix : <{EX}> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:C2 rdfs:subClassOf :C1 . :C1 rdfs:subClassOf :C0 . :C0 rdfs:subClassOf :C1 .
:p1 rdfs:subPropertyOf :p0 ; rdfs:domain :C2 . :p0 rdfs:range :D .
:kind rdfs:subPropertyOf a . _:unnamed rdfs:subClassOf :C2 . :D rdfs:subClassOf "no class" .
:broken :p1 oops .
:b :p1 [ :p2 1.50 ], _:x .
"""


def line(rng: random.Random) -> str:
    """A statement or two, or none, in N-Quads."""
    subject = rng.choice([f"<{EX}s{rng.randrange(60)}>", f"_:b{rng.randrange(9)}"])
    value = rng.choice(
        [
            f"<{EX}s{rng.randrange(60)}>",
            f"_:b{rng.randrange(9)}",
            f'"0{rng.randrange(30)}"^^<{XSD}byte>',
            f'"{rng.random():.1f}"',
            f'"{rng.randrange(30)}"^^<{XSD}integer>',
            '"a \\"q\\" <x> . \\n é _: ^^<y>"@EN',
            f'"1.{rng.randrange(5)}0"^^<{XSD}decimal>',
            f'<<( <{EX}a> <{EX}p> "01"^^<{XSD}integer> )>>',
        ]
    )
    ours = ["<urn:oxiseq:inferred> ", "<urn:oxiseq:statistics> "]
    graph = rng.choice(["", "", f"<{EX}g{rng.randrange(3)}> ", "_:g ", *ours])
    typed = f"{subject} <{TYPE}> <{EX}C{rng.randrange(4)}> {graph}."
    return rng.choices(
        [
            f"{subject} <{EX}p{rng.randrange(4)}> {value} {graph}.",
            typed,
            f"{subject} <{EX}kind> <{EX}C1> .",
            "# comment",
            "",
            rng.choice(BAD),
            f"{subject} <{EX}q> <urn:oxiseq:inferred> .",
            f"<{EX}C3> <{SUB}ClassOf> <{EX}C0> .",
        ],
        [30, 10, 3, 1, 1, 3, 1, 1],
    )[0]


def write_all(folder: Path, seed: int = 1, lines: int = 400) -> Path:
    """A folder with all that."""
    rng = random.Random(seed)
    (folder / "below").mkdir(parents=True)
    for name in ("a.nq", "b.nq"):
        ends = rng.choice(["\n", "\r\n"])
        (folder / name).write_text("".join(line(rng) + ends for _ in range(lines)), encoding="utf-8", newline="")
    (folder / "c.nq.gz").write_bytes(gzip.compress("\n".join(line(rng) for _ in range(lines)).encode()))
    (folder / "below" / "again.nq.bz2").write_bytes(bz2.compress((folder / "a.nq").read_bytes()))
    (folder / "below" / "cut.nq.gz").write_bytes((folder / "c.nq.gz").read_bytes()[:-30])
    (folder / "latin.nt").write_bytes(f'<{EX}a> <{EX}p> "\xe9" .\n<{EX}a> <{EX}p> "e" .\n'.encode("latin-1"))
    (folder / "s.ttl").write_text(SCHEMA)
    trig = f"@prefix : <{EX}> . :g1 {{ :t :p1 :o, [] }} :g2 {{ :t ? . :t :p2 'v'@-x . :t :p2 2 }} :t :p 1 ."
    (folder / "t.trig.xz").write_bytes(lzma.compress(trig.encode()))
    (folder / "u.rdf").write_text(
        '<?xml version="1.0"?>\n<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
        f'xmlns:e="{EX}">\n<rdf:Description rdf:about="{EX}x1"><e:p1>1</e:p1></rdf:Description>\n'
        "</e:other>\n</rdf:RDF>\n"
    )
    (folder / "people.csv").write_text("id,kind,name,age\ns1,C2,Ann,3\ns2,C1\ns3,C3,,4\n")
    pq.write_table(pa.table({"id": ["s4"], "kind": ["C2"], "name": ["Bob"], "age": [5]}), folder / "people.parquet")
    for place in ("kind=C%31", "_temporary"):  # a partition; what nobody has finished
        (folder / place).mkdir()
        (folder / place / "people.csv").write_text("id,name,age\ns5,Eve,6\n")
    (folder / "mapping.rq").write_text(MAPPING)
    return folder


def contents(store: Store) -> tuple[set[Quad], set[Quad]]:
    """The statements, and the statistics with blank nodes named by their place in the graph."""
    statistics = Dataset(store.quads_for_pattern(None, None, None, STATISTICS))
    statistics.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    return {quad for quad in store if quad.graph_name != STATISTICS}, set(statistics)


def quarantine(folder: Path) -> dict[str, list[object]]:
    """Every record by file."""
    files = sorted(folder.iterdir())
    return {file.name: [json.loads(text) for text in file.read_text().splitlines()] for file in files}
