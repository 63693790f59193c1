"""The packages that pyproject.toml lists are the folders with Python files in them."""

from __future__ import annotations

import tomllib
from pathlib import Path

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
