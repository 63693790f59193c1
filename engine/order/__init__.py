"""Events put in order: in any order of arrival → in order of time (semantics.md 2.7).

waiting.py      the buffer in front of every language; what each takes from it:
clock.py        SPAseq: complete instants
arrivals.py     continuous SPARQL and EP-SPARQL: one event after another
merging.py      CEQL: events of all streams, each at its position; positions.py: such positions as instants
watermarks.py   up to when each stream is complete, and which events are late
"""
