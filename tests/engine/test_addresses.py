"""No kernel reads an array at an address whose owner is gone."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
FREED: Final = Path(__file__).with_name("freed_tables.py")
POINTERS: Final = Path("engine/kernels/memory/pointers.py")
"""Where addresses are taken."""
_LASTING: Final = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.expr_context)
"""What an expression without temporaries is made of."""
_TAKEN: Final = ("address", "ctypes", "__array_interface__")
_TAKERS: Final = ("address_of", "addressof", "data_as", "from_address", "from_buffer")


def _faults(source: str) -> Iterator[str]:
    """What a module does with addresses that it should not."""
    for node in ast.walk(ast.parse(source)):
        told = f"line {getattr(node, 'lineno', 0)}: "
        if isinstance(node, ast.Attribute) and node.attr in _TAKEN and not _lasts(node.value):
            yield f"{told}the address of a temporary: give `call` its owner, or keep it by a name"
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", None) or getattr(node.func, "attr", None)
            if name in _TAKERS and not all(map(_lasts, node.args)):
                yield f"{told}the address of a temporary: keep it by a name"
            given = ast.walk(node) if name == "Call" else node.args
            if any(map(_of_another, given)) and name != "lend":  # which is told the owner
                yield f"{told}a kernel with an address: give `call` its owner"
        if isinstance(node, ast.Assign) and _of_another(node.value) and isinstance(node.targets[0], ast.Name):
            yield f"{told}an address by a name of its own: give `call` its owner"


def _lasts(expression: ast.expr) -> bool:
    return all(isinstance(node, _LASTING) for node in ast.walk(expression))


def _of_another(argument: ast.AST) -> bool:
    """Whether an argument is an address, and not `self`'s, who calls: for a text of the dictionary, `call` would take
    a third of the time."""
    return isinstance(argument, ast.Attribute) and argument.attr == "address" and ast.unparse(argument.value) != "self"


@pytest.mark.parametrize("package", ["engine", "grammar", "kb_loader", "plugin", "benchmarks"])
def test_addresses_are_those_of_objects_that_last(package: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}, {fault}"
        for path in sorted((ROOT / package).rglob("*.py"))
        if path.relative_to(ROOT) != POINTERS
        for fault in _faults(path.read_text(encoding="utf-8"))
        if package == "engine" or not fault.endswith("its owner")  # elsewhere an address is a host's name
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "code",
    [
        "choose(Pointers(memory).address)",
        "table = Pointers(memory).address",
        "advance(tables.of(memory).address, 1)",
        "read(address_of(np.frombuffer(text, np.uint8)))",
        "read(np.zeros(3).ctypes.data)",
        "read((a + b).__array_interface__)",
        "choose(memory.address)",
        "address = memory.address",
        "Call(choose, (memory.address, 1))",
    ],
)
def test_each_way_to_lose_an_owner_is_found(code: str) -> None:
    assert [*_faults(code)]


def test_no_kernel_reads_a_pointer_table_that_is_gone() -> None:
    """A kernel that reads a freed table ends this process: by chance, or by another thread's arrays, it did servers."""
    found = subprocess.run([sys.executable, FREED], capture_output=True, text=True, timeout=300, check=False)
    assert found.returncode == 0, found.stderr
    assert [line.split() for line in found.stdout.splitlines()] == [
        ["ceql", "2"],
        ["spaseq", "2"],
        ["spaseq", "2"],
        ["spaseq", "4"],
        ["spaseq", "2"],
        ["rspql", "26"],
        ["epsparql", "8"],
    ]
