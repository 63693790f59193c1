"""RDF/XML whose entities grow: refused at every door, before it grows, with a message that says what to do."""

from __future__ import annotations

import gzip
import io
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest
from kb_doors import STREAM, ask, server
from pyoxigraph import Literal, NamedNode, RdfFormat
from pyoxigraph import Store as RdfStore

import oxiseq
from oxiseq.engine.errors import KbError
from oxiseq.engine.rdf import Guarded, parse
from oxiseq.kb_loader import load as load_kb

ROOT = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
BODY = '<rdf:Description rdf:about="http://e/a"><e:p>%s</e:p></rdf:Description></rdf:RDF>'
PLAIN = (ROOT + BODY % "x").encode()
GROWING = "\n".join(['<!ENTITY a0 "aaaaaaaaaa">', *(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))])
"""Ten thousand million letters, if it is expanded."""
BOMB = (f"<!DOCTYPE rdf:RDF [\n{GROWING}\n]>" + ROOT + BODY % "&a9;").encode()
PROTEGE = (
    '<?xml version="1.0"?>\n<!DOCTYPE rdf:RDF [\n    <!ENTITY owl "http://www.w3.org/2002/07/owl#" >\n]>\n'
    + ROOT
    + BODY % "&owl;"
).encode()
SAYS = "write the values in place of &name;, or save the document as Turtle"
RDF_XML = ("Content-Type", "application/rdf+xml")

HIDDEN = {
    "plain": BOMB,
    "one that is harmless": PROTEGE,
    "behind a comment and an instruction": b"<?xml version='1.0'?><!-- <a> --><?php ?>\n" + BOMB,
    "behind a byte order mark": b"\xef\xbb\xbf" + BOMB,
    "in lower case": BOMB.replace(b"<!DOCTYPE", b"<!doctype"),
    "of another name": BOMB.replace(b"<!DOCTYPE", b"<!DOCTYPEx"),
    "behind a comment inside": BOMB.replace(b"[\n", b"[<!-- ]> -->\n"),
    "in a comment inside": BOMB.replace(b"[\n", b"[<!-- \n").replace(b"\n]>", b" -->\n]>"),
    "behind another DOCTYPE": b"<!DOCTYPE a>" + BOMB,
    "within the root": (ROOT + f"<!DOCTYPE a [{GROWING}]>" + BODY % "&a9;").encode(),
    "far within the root": (ROOT + "<!-- " + "x" * 300_000 + f" --><!DOCTYPE a [{GROWING}]>" + BODY % "&a9;").encode(),
    "parameters": BOMB.replace(b"<!ENTITY ", b"<!ENTITY % "),
}


@pytest.fixture(autouse=True)
def quick() -> Iterator[None]:
    """What is expanded takes gigabytes, and the time to fill them."""
    begun = time.monotonic()
    yield
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize("name", HIDDEN)
def test_entities_are_found_wherever_they_are(name: str) -> None:
    with pytest.raises(SyntaxError, match=SAYS):
        list(parse(HIDDEN[name], RdfFormat.RDF_XML))
    with pytest.raises(SyntaxError, match=SAYS):
        list(parse(io.BytesIO(HIDDEN[name]), RdfFormat.RDF_XML))


class Dripping(io.RawIOBase):
    """A file that gives a byte at a time, more or less."""

    def __init__(self, content: bytes, sizes: tuple[int, ...]) -> None:
        self._content, self._sizes, self._at, self._turn = content, sizes, 0, 0

    def read(self, size: int = -1) -> bytes:
        count = self._sizes[self._turn % len(self._sizes)]
        self._turn += 1
        piece = self._content[self._at : self._at + count]
        self._at += count
        return piece


@pytest.mark.parametrize("sizes", [(1,), (2, 3), (7,), (8, 1), (9,), (40,)])
def test_however_it_is_cut_the_declaration_is_not_handed_out(sizes: tuple[int, ...]) -> None:
    guarded = Guarded(Dripping(PROTEGE, sizes), RdfFormat.RDF_XML)  # type: ignore[arg-type]  # it is read, no more
    seen = b""
    with pytest.raises(SyntaxError) as told:
        while piece := guarded.read(10):
            seen += piece
    assert b"<!ENTITY" not in seen
    assert told.value.lineno == 3


@pytest.mark.parametrize("coding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-7", "iso2022_jp", "cp037"])
def test_no_other_coding_hides_it(coding: str) -> None:
    """Oxigraph reads UTF-8 only, whatever the document says of itself."""
    for head in ("", f'<?xml version="1.0" encoding="{coding}"?>'):
        with pytest.raises(SyntaxError):
            list(parse((head + BOMB.decode()).encode(coding), RdfFormat.RDF_XML))


@pytest.mark.parametrize("external", ['SYSTEM "file:///etc/passwd"', 'PUBLIC "a" "http://e/x.dtd"'])
def test_external_ones_are_refused_too(external: str) -> None:
    with pytest.raises(SyntaxError, match=SAYS):
        list(parse(f"<!DOCTYPE a [<!ENTITY v {external}>]>{ROOT}{BODY % '&v;'}", RdfFormat.RDF_XML))


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.decode(),
        "<!DOCTYPE rdf:RDF>" + PLAIN.decode(),
        '<!DOCTYPE rdf:RDF SYSTEM "http://e/x.dtd">' + PLAIN.decode(),
        PLAIN.decode().replace(">x<", "><![CDATA[x]]><"),
        "<!-- <!ENTITY a 'b'> -->" + PLAIN.decode(),
    ],
)
def test_what_declares_nothing_is_read(text: str) -> None:
    for content in (text, text.encode(), io.BytesIO(text.encode())):
        assert [quad.object for quad in parse(content, RdfFormat.RDF_XML)] == [Literal("x")]


def test_words_of_xml_in_other_formats_are_words() -> None:
    text = "<http://e/a> <http://e/p> \"<!DOCTYPE a [<!ENTITY b 'c'>]>\" ."
    assert len(list(parse(text, RdfFormat.TURTLE))) == 1
    assert len(list(parse(io.BytesIO(text.encode()), RdfFormat.N_TRIPLES))) == 1


# --- Python ---------------------------------------------------------------------------------------------

LOADS: dict[str, Callable[[oxiseq.Store, Path], object]] = {
    "load, bytes": lambda store, _: store.load(BOMB, RdfFormat.RDF_XML),
    "load, text": lambda store, _: store.load(BOMB.decode(), format=RdfFormat.RDF_XML),
    "load, a file": lambda store, _: store.load(io.BytesIO(BOMB), RdfFormat.RDF_XML),
    "load, a path": lambda store, path: store.load(path=path),
    "load, a path and a format": lambda store, path: store.load(path=str(path), format=RdfFormat.RDF_XML),
    "bulk_load, bytes": lambda store, _: store.bulk_load(BOMB, RdfFormat.RDF_XML),
    "bulk_load, a path": lambda store, path: store.bulk_load(path=path),
}


@pytest.mark.parametrize("way", LOADS)
def test_a_store_loads_none(way: str, tmp_path: Path) -> None:
    path, store = tmp_path / "kb.rdf", oxiseq.Store()
    path.write_bytes(BOMB)
    with pytest.raises(SyntaxError, match=SAYS):
        LOADS[way](store, path)
    assert len(store) == 0
    path.write_bytes(PLAIN)
    store.load(path=path, to_graph=NamedNode("http://e/g"))
    store.bulk_load(PLAIN, RdfFormat.RDF_XML)
    assert len(store) == 2


QUERY = """PREFIX : <http://e/>
SELECT ?v FROM STREAM S <http://e/S> WHERE { SEQ(A) DEFINE GPM A ON S { ?k :p ?x GRAPH :g { ?k :v ?v } } }"""


@pytest.mark.parametrize("packed", [False, True])
def test_no_kb_of_a_run_has_them(packed: bool, tmp_path: Path) -> None:
    path = tmp_path / ("kb.owl.gz" if packed else "kb.owl")
    path.write_bytes(gzip.compress(BOMB) if packed else BOMB)
    with pytest.raises(KbError, match=SAYS):
        oxiseq.run(QUERY, {"S": []}, kb=path)


@pytest.mark.parametrize("packed", [False, True])
def test_the_loader_leaves_the_file_out(packed: bool, tmp_path: Path) -> None:
    opened: Callable[[Path], IO[bytes]] = gzip.open if packed else Path.open  # type: ignore[assignment]  # with "wb"
    path = tmp_path / ("kb.rdf.gz" if packed else "kb.rdf")
    with opened(path, "wb") as file:  # type: ignore[call-arg]  # both take a mode
        file.write(BOMB)
    report = load_kb(path, tmp_path / "kb")
    assert (report.stored, report.quarantined) == (0, 1)
    (told,) = (tmp_path / "kb.quarantine").iterdir()
    assert SAYS in told.read_text()
    with pytest.raises(KbError):
        load_kb(path, tmp_path / "strict", strict=True)


# --- HTTP -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with server(tmp_path_factory.mktemp("live")) as given:
        yield given


PARTS = b'--x\r\nContent-Disposition: form-data; name="f"; filename="f.rdf"\r\nContent-Type: %s\r\n\r\n%s\r\n'


@pytest.mark.parametrize(
    ("method", "target"),
    [("PUT", "/store?default"), ("POST", "/store?graph=http://e/g"), ("POST", "/store"), ("POST", f"{STREAM}?time=1")],
)
@pytest.mark.parametrize("packed", [False, True])
def test_the_server_takes_none(address: str, method: str, target: str, packed: bool) -> None:
    body, headers = BOMB, [RDF_XML]
    if packed:
        body, headers = gzip.compress(BOMB), [RDF_XML, ("Content-Encoding", "gzip")]
    answer = ask(address, method, target, headers, body)
    assert answer.status == 400
    assert SAYS in json.dumps(json.loads(answer.body))
    assert ask(address, method, target, [RDF_XML], PLAIN).status in (200, 201, 202, 204)


@pytest.mark.parametrize("others", [0, 1])
def test_nor_as_a_part_of_a_form(address: str, others: int) -> None:
    body = PARTS % (b"application/rdf+xml", BOMB) + PARTS % (b"text/turtle", b"<a:a> <a:b> 1 .") * others + b"--x--\r\n"
    answer = ask(address, "POST", "/store?default", [("Content-Type", "multipart/form-data; boundary=x")], body)
    assert (answer.status, SAYS in answer.body.decode()) == (400, True)


def test_the_parser_behind_still_grows() -> None:
    """Else all this may go."""
    small = BOMB.replace(b"&a9;", b"&a3;")
    store = RdfStore()
    store.load(small.split(b"<!ENTITY a4")[0] + b"]>" + small.split(b"]>")[1], RdfFormat.RDF_XML)
    assert [len(quad.object.value) for quad in store if isinstance(quad.object, Literal)] == [10_000]
