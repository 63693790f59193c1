"""What is loaded when; an installation without extras takes RDF and says which extra brings more."""

from __future__ import annotations

import gc
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import oxiseq
from oxiseq.engine.extras import EXTRAS, Needed, needed
from oxiseq.warmup.importing import loading

ROOT = Path(__file__).parents[2]
HEAVY = ("numba", "numpy", "pyoxigraph", "pyarrow", "rdflib", "pandas", "rich", "lark", "click")
WITHOUT_EXTRAS = """
import sys
for name in ("pyarrow", "pandas", "rdflib", "pyjelly", "pyspark", "httpx", "flask", "uvicorn", "bokeh_sampledata"):
    sys.modules[name] = None
"""
QUERY = """
PREFIX : <http://example.org/>
SELECT ?who ?first ?second FROM STREAM S <http://example.org/payments>
WHERE { SEQ(A; B) DEFINE GPM A ON S { ?who :paid ?first } DEFINE GPM B ON S { ?who :paid ?second } }"""
CEQL = "VOCAB <http://example.org/> SELECT * FROM S WHERE A AS x"
EVENTS = "".join(
    f"<urn:e{i}> <http://www.w3.org/ns/prov#generatedAtTime> "
    f'"2026-11-20T10:00:0{i}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n'
    f"<http://example.org/ann> <http://example.org/paid> {i} <urn:e{i}> .\n".replace(f" {i} <", f' "{i}" <')
    for i in range(3)
)


def python(code: str, *arguments: object) -> str:
    """What a process without any extra prints."""
    command = [sys.executable, "-c", WITHOUT_EXTRAS + code, *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_import_loads_nothing_heavy() -> None:
    code = f"import sys, oxiseq; dir(oxiseq); print(*[name for name in {HEAVY!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == []


def test_a_run_over_rdf_loads_no_arrow(tmp_path: Path) -> None:
    (tmp_path / "events.nq").write_text(EVENTS)
    code = f"""
import oxiseq
found = oxiseq.run({QUERY!r}, {{"S": sys.argv[1]}})
print(len(found), found.write(format="csv").decode().split())
store = oxiseq.Store()
query = store.register({QUERY!r})
stream = store.stream("http://example.org/payments")
for time in range(3):
    stream.push("<http://example.org/ann> <http://example.org/paid> 1 .", time)
store.advance(3)
print(len(list(query.wait("100ms"))))
"""
    assert (
        python(code, tmp_path / "events.nq")
        == "2 ['who,first,second', 'http://example.org/ann,0,1', 'http://example.org/ann,1,2']\n2\n"
    )


UNNEEDED = (
    *("api.what_if", "engine.cea", "engine.flow.flow", "engine.rsp", "engine.snapshot", "engine.windows.run"),
    *("kb_loader", "languages.ceql", "languages.epsparql", "languages.reasons", "languages.rsp", "mappings"),
)


def test_a_first_match_loads_no_other_language_and_no_explanations() -> None:
    code = f"""
import sys, oxiseq
assert len(oxiseq.run({QUERY!r}, {{"S": [(1, "<urn:a> <http://example.org/paid> 1 .")] * 2}})) == 0
print(*[name for name in {UNNEEDED!r} if "oxiseq." + name in sys.modules])
"""
    assert python(code).split() == []


def test_loading_leaves_the_collector_as_it_was() -> None:
    with loading():
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with loading():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with loading():
            pass
        assert gc.get_freeze_count() == frozen
    finally:
        gc.unfreeze()


def test_ceql_over_rdf_loads_no_arrow() -> None:
    graph = "[] a <http://example.org/A> ."
    code = f"import oxiseq; print(len(oxiseq.run({CEQL!r}, {{'S': [(1, {graph!r})]}}, language='ceql')))"
    assert python(code) == "1\n"


@pytest.mark.slow
def test_the_demo_runs_without_extras() -> None:
    assert "39 matches in all" in python("from oxiseq.cli import main; main(['demo'], prog_name='oxiseq')")


NEEDS_ARROW = (
    "oxiseq.run(query, {'S': [(0, '')]}).to_arrow()",
    "oxiseq.run(query, {'S': [(0, '')]}).write('found.parquet')",
    "oxiseq.run(query, {'S': sys.argv[1] + '/events.parquet'})",
    "oxiseq.run(query, {'S': sys.argv[1] + '/events.arrow'})",
    "oxiseq.run(ceql, {'S': sys.argv[1] + '/rows.csv'}, language='ceql')",
)


def test_what_needs_arrow_says_so(tmp_path: Path) -> None:
    for name in ("events.parquet", "events.arrow", "rows.csv"):
        (tmp_path / name).write_text("time,type\n1,A\n")
    code = f"""
import os, oxiseq
query, ceql = {QUERY!r}, {CEQL!r}
os.chdir(sys.argv[1])
for call in {NEEDS_ARROW!r}:
    try:
        eval(call)
    except oxiseq.OxiseqError as error:
        print(type(error).__name__, isinstance(error, ImportError), error)
"""
    said = "ExtraError True this needs pyarrow, which is not installed: pip install 'oxiseq[arrow]'\n"
    assert python(code, tmp_path) == said * len(NEEDS_ARROW)


def test_a_module_that_waits_is_asked_for_nothing_by_inspection() -> None:
    waiting = needed("pandas.no_such_part")
    assert isinstance(waiting, Needed)
    assert not hasattr(waiting, "__wrapped__")


def test_every_extra_is_one_of_the_package() -> None:
    given = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for package, extra in EXTRAS.items():
        assert any(package in each.replace("-", "_") for each in given[extra])


def test_dir_shows_what_is_public() -> None:
    assert set(dir(oxiseq)) == {*oxiseq.__all__, "__version__"}
