"""What docstrings and comments cite of the designs stands in docs/design, under the section that they name."""

from __future__ import annotations

import re
from functools import cache

from blocks import ROOT

DESIGN = ROOT / "docs" / "design"
_CITED = re.compile(r"\bsemantics\.md,?(?: sections?)? (\d[\d.]*[a-d]?(?:(?:, (?:and )?| and | to )\d[\d.]*[a-d]?)*)")
_NUMBER = re.compile(r"\d+(?:\.\d+)*[a-d]?")
_HEADING = re.compile(r"^#+ (\d[\d.]*[a-d]?)", re.MULTILINE)


@cache
def sections() -> frozenset[str]:
    return frozenset(each.rstrip(".") for each in _HEADING.findall((DESIGN / "semantics.md").read_text()))


def test_every_cited_section_of_the_specification_is_there() -> None:
    missing, found = [], 0
    for top in ("engine", "grammar", "plugin", "kb_loader", "tests", "benchmarks", "docs"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix not in {".py", ".md", ".toml"}:
                continue
            for cited in _CITED.finditer(path.read_text()):
                found += 1
                wrong = [number for number in _NUMBER.findall(cited[1]) if number not in sections()]
                missing += [f"{path.relative_to(ROOT)}: {cited[0]}"] if wrong else []
    assert found > 100
    assert not missing
