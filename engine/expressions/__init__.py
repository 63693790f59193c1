"""Expressions: exactly in Python, and fast on a stack machine that says when it cannot decide.

    Expression ─ exact.evaluate ─▶ term                        any expression, one mapping at a time
    Expression ─ program.compile_program ─▶ int32 code ─ kernels.machine ─▶ true, false, error, undecided

`exact` decides where the machine cannot; the two never disagree (semantics.md, section 7).
"""
