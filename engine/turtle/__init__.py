"""Turtle and TriG with faults: the valid statements, and each fault by itself.

    text ─ scan.py: units (statements, "{", "}") ─ valid.py: each run of units parsed by pyoxigraph ─▶ quads, faults

pyoxigraph's parser judges every statement. What is here finds where a statement ends, so that one bad statement takes
no other with it. The knowledge base's loader and the reader of event files share it.
"""

from oxiseq.engine.turtle.valid import Flaw, valid_statements

__all__ = ["Flaw", "valid_statements"]
