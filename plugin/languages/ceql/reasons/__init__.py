"""Why a CEQL query matches or does not.

    streams ─ events.py ─▶ events by position ─ variants.py: the automaton's places ─ subject.py ─▶ languages/reasons

A place counts the events that complete it, not the partial matches, which may be exponentially many.
"""
