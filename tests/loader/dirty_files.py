"""Sources with faults, and what of them is valid."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path

EX = "http://example.org/"
NT = (
    b'<http://example.org/a> <http://example.org/p> "01"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
    b"# a comment\n"
    b"<http://example.org/a> <http://example.org/p> broken .\n"
    b'<http://example.org/a> <http://example.org/p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
    b"<http://example.org/a b> <http://example.org/p> <http://example.org/c> .\n"
    b'_:x <http://example.org/p> "blank"@EN .\n'
)
TTL = b"@prefix : <http://example.org/> .\n:b :p 1 .\n:b :p oops .\n:b :q :c .\n_:x :q :c .\n"
XML = (
    b'<?xml version="1.0"?>\n'
    b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://example.org/">\n'
    b'<rdf:Description rdf:about="http://example.org/x1"><e:p>1</e:p></rdf:Description>\n'
    b"</e:other>\n"
    b'<rdf:Description rdf:about="http://example.org/x2"><e:p>1</e:p></rdf:Description>\n</rdf:RDF>\n'
)


def write_all(folder: Path) -> Path:
    """A folder with every format, some packed, some dirty."""
    (folder / "below").mkdir(parents=True)
    (folder / "a.nt").write_bytes(NT)
    (folder / "b.ttl.gz").write_bytes(gzip.compress(TTL))
    (folder / "below" / "c.rdf").write_bytes(XML)
    quad = b"<http://example.org/q> <http://example.org/p> <http://example.org/o> <http://example.org/g> .\n"
    (folder / "below" / "d.nq.bz2").write_bytes(bz2.compress(quad))
    (folder / "e.trig.xz").write_bytes(lzma.compress(b"@prefix : <http://example.org/> . :g { :t :p :o }"))
    (folder / "ignored.txt").write_text("not RDF")
    return folder
