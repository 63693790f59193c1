"""Small tables for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def html_table(caption: str, rows: Sequence[tuple[str, str]], text: str = "") -> str:
    """Names and values; `text` is folded away below."""
    cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
    below = f"<details><summary>text</summary><pre>{escape(text)}</pre></details>" if text else ""
    return f"<table><caption>{escape(caption)}</caption>{cells}</table>{below}"
