"""EP-SPARQL at work: rows with intervals, operators over them, rules (semantics.md 5).

    events ─ timed triples, in order of their ends ─ rules, to their closure ─ operators ─ answers

Every solution ends when its last triple does, so each is found once, when that triple comes: an operator joins what has
come with what it keeps of before, and keeps what may still be needed.
"""
