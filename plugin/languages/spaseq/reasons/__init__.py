"""Why a SPAseq query matches or does not.

streams ─ history ─ subject.py ─┬─ stages.py: the beginnings of the sequence
                                ├─ conditions.py: each left out
                                └─ evidence.py: what a match that is kept rests on; matched.py: the triples of it
"""
