"""`mypy --strict` and pyright find nothing in a file that uses every public name."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import oxiseq

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).with_name("every_name.py")
FOLDERS = {"oxiseq": "plugin", "oxiseq/grammar": "grammar", "oxiseq/engine": "engine", "oxiseq/kb_loader": "kb_loader"}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as it lies in an installation, of links: type checkers cannot follow every editable one."""
    site = tmp_path_factory.mktemp("site")
    for name, folder in FOLDERS.items():
        for path in (ROOT / folder).rglob("*.py"):
            link = site / name / path.relative_to(ROOT / folder)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)
    (site / "oxiseq/py.typed").symlink_to(ROOT / "plugin/py.typed")
    return site


def test_the_file_uses_every_public_name() -> None:
    tree = ast.parse(FILE.read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert {*oxiseq.__all__} <= imported | used


@pytest.mark.full  # with its checks of the package the gate looks at the file, too
@pytest.mark.slow
def test_mypy_finds_nothing(installed: Path, tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    options = ["--strict", "--config-file", os.devnull, "--cache-dir", str(tmp_path)]
    command = [sys.executable, "-m", "mypy", *options, str(FILE)]
    result = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        env={**os.environ, "MYPYPATH": "", "PYTHONPATH": str(installed)},
    )
    assert result.stdout.startswith("Success"), result.stdout + result.stderr


def test_pyright_finds_nothing(installed: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyright", reason="pyright is not installed: pip install --group lint")
    (tmp_path / "user.py").write_text(FILE.read_text(encoding="utf-8"))
    settings = f'{{"typeCheckingMode": "strict", "extraPaths": ["{installed}"], "pythonVersion": "3.11"}}'
    (tmp_path / "pyrightconfig.json").write_text(settings)
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--project", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    if "0 errors" not in result.stdout and "Error: " in result.stderr and "error:" not in result.stdout:
        pytest.skip(f"pyright cannot be started here: it fetches itself with npm: {result.stderr[-200:]}")
    assert "0 errors" in result.stdout, result.stdout
