"""Why a SPAseq query matches or does not.

streams ─ history ─ subject.py ─┬─ stages.py: the beginnings of the sequence, answering.py: their matches
                                ├─ conditions.py: each left out; blockers.py: what a negation has seen
                                └─ origins.py: what a match was made of; evidence.py: what one that is kept rests
                                   on; matched.py: the triples that its patterns matched
"""
