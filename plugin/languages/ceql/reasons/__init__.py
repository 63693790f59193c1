"""Why a CEQL query matches or does not.

    streams ─ events.py ─▶ events by position ─┬─ places.py: per event of the formula, how many pass its conditions
                                               ├─ reached.py: which places of the automaton events complete
                                               ├─ relax.py: what one condition less would complete
                                               └─ origins.py: what complex events were made of

As for SPAseq everything is counted by the engine: the automaton with another last place, or with one condition left
out. A place counts the events that complete it, not the partial matches, which may be exponentially many.
"""
