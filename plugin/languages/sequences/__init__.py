"""What a plan about the order of events is compiled to, of every language and for both runners.

    SequencePlan ─explain.py: one walk─▶ facts ─▶ text, JSON, Graphviz, a picture

live_keys.py and sets.py say what differs: how letters are found, and what the automaton is. clauses.py is what `why`
leaves out of queries of each such language.
"""
