"""The packages that pyproject.toml lists are the folders with Python files in them."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SETUP = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]


def test_every_folder_of_the_tree_is_a_package() -> None:
    found = {
        ".".join([package, *folder.relative_to(ROOT / top).parts])
        for package, top in SETUP["package-dir"].items()
        for folder in {path.parent for path in (ROOT / top).rglob("*.py")}
    }
    assert sorted(SETUP["packages"]) == sorted(found)


def test_every_package_has_its_docstring() -> None:
    for package, top in SETUP["package-dir"].items():
        for name in SETUP["packages"]:
            if name == package or (name.startswith(f"{package}.") and package != "oxiseq"):
                folder = ROOT / top / "/".join(name.removeprefix(package).strip(".").split("."))
                assert (folder / "__init__.py").read_text(encoding="utf-8").startswith('"""'), name


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="only a clone knows what is kept")
def test_nothing_else_lies_at_the_top() -> None:
    told = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    assert {name.split("/")[0] for name in told.stdout.decode().split("\0") if name} == {
        ".ci",
        ".git-blame-ignore-revs",
        ".github",
        ".gitignore",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE",
        "Makefile",
        "README.md",
        "SECURITY.md",
        "benchmarks",
        "docs",
        "engine",
        "examples",
        "grammar",
        "kb_loader",
        "mkdocs.yml",
        "plugin",
        "pyproject.toml",
        "tests",
    }
