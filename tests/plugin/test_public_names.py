"""Every public name has a docstring with an example that runs, and every member of it has a docstring."""

from __future__ import annotations

import doctest
import inspect

import pytest

import oxiseq

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("name", oxiseq.__all__)
def test_its_example_runs(name: str) -> None:
    found = getattr(oxiseq, name)
    examples = [test for test in doctest.DocTestFinder().find(found, name, module=False, globs={}) if test.examples]
    assert examples, f"{name} has no example"
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for test in examples:
        runner.run(test)
    assert runner.summarize().failed == 0


def test_members_of_public_names_are_documented() -> None:
    classes = {name: found for name in oxiseq.__all__ if inspect.isclass(found := getattr(oxiseq, name))}
    bare = [
        f"{name}.{member}"
        for name, found in classes.items()
        for member, of in inspect.getmembers(found, lambda of: inspect.isfunction(of) or isinstance(of, property))
        if not member.startswith("_") and not inspect.getdoc(of)
    ]
    assert bare == []
