"""The page's gallery is what the examples' pattern tests make it."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_gallery_is_made_of_the_examples() -> None:
    module = runpy.run_path(str(EXAMPLES / "gallery.py"))
    kept = json.loads(module["GALLERY"].read_text("utf-8"))
    assert kept == json.loads(module["made"]()), "make it anew: python examples/gallery.py"
