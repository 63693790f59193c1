"""EP-SPARQL at work: rows with intervals, operators over them, rules (semantics.md 5).

    events ─ timed triples, in order of their ends ─ rules, to their closure ─ operators ─ answers

Every solution ends when its last triple does, so each is found once, when that triple comes: an operator joins rows
that have come with those it has kept, and keeps those that may still be needed.
"""
