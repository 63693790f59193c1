"""An extension of griffe: examples in docstrings (`>>>`) are code, not Markdown, on the site."""

from __future__ import annotations

import re
from typing import Any, Final

import griffe

_EXAMPLE: Final = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


class FencedExamples(griffe.Extension):
    """Fences around each example of a docstring."""

    def on_instance(self, *, obj: griffe.Object, **more: Any) -> None:
        """Once per function, class and module that is read."""
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```", obj.docstring.value)
