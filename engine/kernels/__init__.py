"""All the Numba: module-level functions over flat arrays, driven by tables, never generated per query.

output       row ids of matches → answers and their texts
cea          CEQL: sets of states over the compact set
sequence     SPAseq: groups of runs over the compact set
matches      the compact set: nodes, enumeration, choice, counts
flow         operators of continuous queries
windows      conjunctive patterns over windows
matching     graph patterns on a batch of events
expressions  the stack machine that filters run on
events       RDF text → term ids and events
terms        texts ↔ ids, plain literals and their values
memory       arrays behind pointers, hashes and hash tables, bytes at addresses
compiling    how Numba compiles all this
ahead        a program that compiles what a first run needs
"""
