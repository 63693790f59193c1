"""Why a SPAseq query matches or does not.

streams ─ history ─┬─ funnel.py: per graph pattern, how far its events came
                   ├─ stages.py: how many matches the beginnings of the sequence have
                   ├─ relax.py: where it ends, what would match without one condition; blockers.py
                   └─ origins.py: what a match was made of; evidence.py: what one that is kept rests on;
                      matched.py: the triples that its patterns matched
"""
