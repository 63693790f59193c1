"""Print what the extras of the package ask for, a line each: `python3 .ci/extras.py`."""

from __future__ import annotations

import tomllib
from pathlib import Path

if __name__ == "__main__":
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    asked = {each for extra in project["optional-dependencies"].values() for each in extra}
    print(*sorted(each for each in asked if not each.startswith(project["name"])), sep="\n")
