"""`make changed` and mutation testing name sources and tests that there are."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _tools(monkeypatch: pytest.MonkeyPatch) -> None:
    if not (ROOT / ".ci").is_dir():
        pytest.skip("the tools are not in this copy")
    monkeypatch.syspath_prepend(ROOT / ".ci")


def test_sources_and_tests_are_there() -> None:
    from near import NEAR  # noqa: PLC0415  no package, found by the fixture

    named = [*NEAR, *(f"tests/{test}" for tests in NEAR.values() for test in tests)]
    assert [each for each in named if not (ROOT / each).exists()] == []


def test_every_source_has_tests_near_it() -> None:
    from near import near  # noqa: PLC0415

    sources = [path for top in ("engine", "grammar", "kb_loader", "plugin") for path in (ROOT / top).rglob("*.py")]
    assert sources and all(near(str(path.relative_to(ROOT))) for path in sources)
    assert near("engine/kernels/cea/rows.py") == near("engine/kernels/cea")
    assert near("tests/test_near.py") == ["tests/test_near.py"]


def test_a_line_is_changed_in_its_function_wherever_that_stands() -> None:
    from mutation import Mutant, applied  # noqa: PLC0415
    from near import HERE  # noqa: PLC0415

    assert HERE == ROOT
    source = "def f():\n    return 1\n\nclass A:\n    def f(self):\n        return 1\n        return 1\n"
    mutant = Mutant("cea", "x.py", "A.f", "return 1", 1, "return 2")
    changed = applied(mutant, source)
    assert changed is not None and changed.splitlines()[-1] == "        return 2" and changed.count("return 2") == 1
    assert applied(mutant, f"import sys\n{source}") == f"import sys\n{changed}"
    assert applied(mutant._replace(nth=2), source) is None
    assert applied(mutant._replace(function="A.g"), source) is None


def test_what_imports_a_helper_is_near_it() -> None:
    from near import near  # noqa: PLC0415

    assert "tests/live/test_serve_kills.py" in near("tests/live/serve_process.py")
    assert near("tests/conftest.py") == ["tests"]
