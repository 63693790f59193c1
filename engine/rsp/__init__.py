"""Queries over windows: continuous SPARQL and RSEP-QL (semantics.md 4 and 6).

plan.py       algebra → windows, events, when it is answered; WHERE as operators (engine/flow)
items.py      the events that windows may still hold
held.py       these, what each window holds at an instant, and which instants are due
schedule.py   the instants at which the query is answered
joint.py      several queries over the same windows as one
event_mappings.py  what event patterns have in windows, those of several queries as one
steady.py     all instants of a batch at once, where each is an instant of the streams
general.py    one instant after the other, whatever the windows are and whenever it is answered
full_rows.py  by what answers are compared, and what they show
"""
