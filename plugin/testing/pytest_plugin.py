"""pytest collects `*.oxitest.toml`: each case is a test. Only pytest is imported until there is such a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_ENDING = ".oxitest.toml"


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Files of tests, wherever pytest looks for tests."""
    if file_path.name.endswith(_ENDING):
        collected: OxiseqFile = OxiseqFile.from_parent(parent, path=file_path)
        return collected
    return None


class OxiseqFile(pytest.File):
    """A file of cases."""

    def collect(self) -> Iterator[OxiseqCase]:
        """One item per case."""
        from oxiseq.grammar.errors import OxiseqError  # noqa: PLC0415  pytest loads this always
        from oxiseq.testing.cases import load_cases  # noqa: PLC0415  pytest loads this always

        try:
            cases = load_cases(self.path)
        except OxiseqError as error:
            raise self.CollectError(str(error)) from error
        for case in cases:
            item: OxiseqCase = OxiseqCase.from_parent(self, name=case.name)
            item.case = case
            yield item


class CaseFailedError(Exception):
    """A case was not as expected; the message says how."""


class OxiseqCase(pytest.Item):
    """One case."""

    case: Any

    def runtest(self) -> None:
        """Raises CaseFailedError with the difference, and why matches are missing."""
        from oxiseq.testing.run import failure_text, run_case  # noqa: PLC0415  pytest loads this always

        result = run_case(self.case)
        if not result.passed:
            raise CaseFailedError(failure_text(result))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The difference alone; a traceback only for what is not the case's fault."""
        from oxiseq.grammar.errors import OxiseqError  # noqa: PLC0415  pytest loads this always

        if isinstance(excinfo.value, CaseFailedError | OxiseqError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Its file and line."""
        return self.path, None, f"{self.path.name}: {self.name}"
