"""Many queries at work on one store: what is alike in them is done once.

runs.py            the queries of a store, of all languages: which dispatcher (dispatching.py) has each
shared.py          SPAseq: those that take events alike share the clock and the matching (joint_matching.py)
alike.py           which of them find their matches together
together.py        queries over windows: those in the same state share it
apart.py           the others: each works when events concern it, or somebody looks; backlog.py: what it has not got yet
member.py          which queries find the same for ever, or come to be the same
"""
