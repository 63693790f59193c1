"""Every block of README and docs is run, or says why not."""

from __future__ import annotations

import doctest
import json
import re
import tomllib
from pathlib import Path

import pyoxigraph
import pytest
import shell
from blocks import PAGES, Block, blocks, name, to_run
from profiles import in_the_gate

import oxiseq

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
SHELL = ("sh", "bash")
RUN = ("python", *SHELL, "sparql", "turtle", "json", "toml")
SHOWN = {
    "text": "output",
    "": "output or a drawing",
    "nginx": "tests/server/test_edge.py",
    "caddyfile": "nginx's twin",
    "javascript": "for a browser",
    "yaml": "a configuration of another program",
    "csv": "data",
    "http": "a request as it is sent",
    "xml": "data of another program",
    "dockerfile": "no daemon in the tests",
    "ini": "a configuration of another program",
}
"""Kinds that are not run, and why."""


def pages_with(*kinds: str) -> list[Path]:
    return [page for page in PAGES if to_run(page, *kinds)]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_block_says_what_it_is(page: Path) -> None:
    for block in blocks(page):
        assert block.kind in RUN or block.kind in SHOWN, f"{name(page)}:{block.line}: {block.kind}"


@pytest.mark.parametrize("page", pages_with("python"), ids=name)
def test_python(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions as doctests; programs one after the other in one namespace."""
    monkeypatch.chdir(tmp_path)
    found = to_run(page, "python")
    sessions = "\n".join(block.text for block in found if ">>>" in block.text)
    test = doctest.DocTestParser().get_doctest(sessions, {}, name(page), str(page), 0)
    written: list[str] = []
    assert doctest.DocTestRunner(optionflags=FLAGS).run(test, out=written.append).failed == 0, "".join(written)
    namespace: dict[str, object] = {}
    for block in found:
        if ">>>" not in block.text:
            exec(compile(block.text, f"{name(page)}:{block.line}", "exec"), namespace)


@pytest.mark.parametrize(
    "page", in_the_gate([page for page in PAGES if page.name != "research.md"], pages_with(*SHELL)), ids=name
)
@pytest.mark.slow
def test_shell(page: Path, tmp_path: Path) -> None:
    if page.name == "README.md":
        pytest.skip("the gate's own two commands: .ci/run evaluates them")
    shell.run(to_run(page, *SHELL), tmp_path)


@pytest.mark.parametrize("page", pages_with("sparql"), ids=name)
def test_queries(page: Path) -> None:
    for block in to_run(page, "sparql"):
        assert not errors(block, page), f"{name(page)}:{block.line}"


@pytest.mark.parametrize("page", pages_with("turtle", "json", "toml"), ids=name)
def test_data(page: Path) -> None:
    for block in to_run(page, "turtle"):
        if block.text.startswith("VERSION"):
            continue  # RDF Messages: tests/events
        list(pyoxigraph.parse(block.text.encode(), format=pyoxigraph.RdfFormat.TRIG))
    for block in to_run(page, "json"):
        json.loads(block.text)
    for block in to_run(page, "toml"):
        tomllib.loads(block.text)


def errors(block: Block, page: Path) -> list[object]:
    """What `oxiseq check` says of a query: in the page's language, else in the first that its text can be."""
    names = [page.stem] if page.stem in ("ceql", "spaseq") else ["spaseq", "rspql", "rsepql", "epsparql", "sparql"]
    said: list[object] = []
    for language in names:
        if language == "sparql":
            pyoxigraph.Store().query(block.text) if re.search(r"\b(SELECT|CONSTRUCT|ASK)\b", block.text) else None
            return []
        found = [one for one in oxiseq.Query(block.text, language=language).check() if one.severity == "error"]
        if not found:
            return []
        said = list(found)
    return said
