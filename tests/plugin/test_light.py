"""What is loaded when; an installation without extras takes RDF and says which extra brings more."""

from __future__ import annotations

import ast
import gc
import pkgutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

import oxiseq
from oxiseq.engine.extras import EXTRAS, Needed, needed
from oxiseq.engine.importing import loading
from oxiseq.engine.output import counted_rows

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


def test_help_loads_neither_numbers_nor_parsers() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from oxiseq.cli import main; "
        "assert CliRunner().invoke(main, ['--help']).exit_code == 0; "
        "print(*[name for name in ('numba', 'numpy', 'lark', 'pyarrow', 'rich') if name in sys.modules])"
    )
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
print(len(list(query.poll("100ms"))))
"""
    assert (
        python(code, tmp_path / "events.nq")
        == "2 ['who,first,second', 'http://example.org/ann,0,1', 'http://example.org/ann,1,2']\n2\n"
    )


UNNEEDED = (
    *("api.comparison", "engine.cea", "engine.flow.flow", "engine.rsp", "engine.snapshot", "engine.flow.leaves"),
    *("kb_loader", "languages.ceql", "languages.epsparql", "languages.reasons", "languages.rsp", "mappings"),
)


def test_a_first_match_loads_no_other_language_and_no_explanations() -> None:
    code = f"""
import sys, oxiseq
assert len(oxiseq.run({QUERY!r}, {{"S": [(1, "<urn:a> <http://example.org/paid> 1 .")] * 2}})) == 0
print(*[name for name in {UNNEEDED!r} if "oxiseq." + name in sys.modules])
"""
    assert python(code).split() == []


def test_nothing_grows_old_and_nothing_is_counted_where_nothing_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    monkeypatch.setattr(gc, "get_freeze_count", lambda: counted.append(1) or 1)
    gc.collect()  # the youngest are so few that none of them grows old by itself
    young: list[list[int]] = [[]]
    with loading():
        pass
    assert any(each is young for each in gc.get_objects(generation=0))
    with loading():
        monkeypatch.setitem(sys.modules, "oxiseq_loaded_now", ModuleType("oxiseq_loaded_now"))
    assert counted == [1]


def test_loading_leaves_the_collector_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
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
            monkeypatch.setitem(sys.modules, "oxiseq_loaded_now", ModuleType("oxiseq_loaded_now"))
        assert 0 < gc.get_freeze_count() <= frozen  # what dies meanwhile is no longer counted
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


def test_a_module_that_waited_has_the_names_that_the_module_has_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a test that sets one in place of another changes nothing where it was used before."""
    waiting = needed("oxiseq.engine.output.counted_rows")
    before = waiting.FEW
    monkeypatch.setattr(counted_rows, "FEW", before + 1)
    assert before + 1 == waiting.FEW


def test_a_module_of_oxiseq_that_is_not_there_is_no_missing_extra() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'oxiseq\.engine\.no_such'"):
        needed("oxiseq.engine.no_such").anything  # noqa: B018


def test_the_types_are_those_of_the_module_that_waits() -> None:
    """mypy and import-linter see the import under TYPE_CHECKING, a run the name that `needed` gets."""
    found = 0
    for module in filter(_waits, pkgutil.walk_packages(oxiseq.__path__, "oxiseq.")):
        names = vars(import_module(module.name))
        waiting = {name: each._Needed__name for name, each in names.items() if type(each) is Needed}
        assert waiting.items() <= dict(_for_types(module.name)).items(), module.name
        found += len(waiting)
    assert found > 50


def _waits(module: pkgutil.ModuleInfo) -> bool:
    return not module.name.endswith("__main__") and "needed(" in _source(module.name)


def _source(module: str) -> str:
    spec = find_spec(module)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).read_text()


def _for_types(module: str) -> Iterator[tuple[str, str]]:
    """(name, module) of what is imported under TYPE_CHECKING."""
    for block in ast.parse(_source(module)).body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            for each in block.body:
                for alias in each.names if isinstance(each, ast.Import | ast.ImportFrom) else ():
                    package = f"{each.module}." if isinstance(each, ast.ImportFrom) else ""
                    yield alias.asname or alias.name, package + alias.name


def test_every_extra_is_one_of_the_package() -> None:
    given = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for package, extra in EXTRAS.items():
        assert any(package in each.replace("-", "_") for each in given[extra])


def test_dir_shows_what_is_public() -> None:
    assert set(dir(oxiseq)) == {*oxiseq.__all__, "__version__"}
