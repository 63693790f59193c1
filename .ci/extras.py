"""Print what the extras of the package ask for, a line each: `python3 .ci/extras.py`; with names, what the tests ask
for of these."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

if __name__ == "__main__":
    settings = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
    project, tests = settings["project"], settings["dependency-groups"]["test"]
    extras = {each for extra in project["optional-dependencies"].values() for each in extra}
    named = [each for each in tests if isinstance(each, str) and re.split("[=<>]", each)[0] in sys.argv[1:]]
    print(*(named or sorted(each for each in extras if not each.startswith(project["name"]))), sep="\n")
