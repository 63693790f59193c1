"""Sequences: from the algebra's SEQ expression to runs over event streams.

    sequence ─ positions (Glushkov automaton) ─ states (what each position has bound) ─
    edges with live keys ─ tables (flat arrays) ─▶ runner (state, rows in, matches out)

Compiled values are immutable; all running state is in `runner.SequenceRun`. See engine.md.
"""
