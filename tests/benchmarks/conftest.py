"""The benchmarks are no part of the package: they are found beside tests/."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
