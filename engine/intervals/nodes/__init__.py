"""Operators at work: what has come in, what comes of it out.

Where it stands: plan → **nodes**. `step` is given what has come since the last one, `begin` tells that the instants
before are over. A step is either of the stream or of what has no time (`Arrived.timeless`: at first, and again when the
knowledge base has changed); the latter makes no row with a time, for what has come before keeps its answers.

    node.py: what all share · leaves.py, joins.py, missing.py, rowwise.py: operators · build.py: plan → nodes
"""
