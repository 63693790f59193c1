"""All the Numba: module-level functions over flat arrays, driven by tables, never generated per query.

output       row ids of matches → answers and their texts
sequence     one query's runs over the compact set
matching     graph patterns on a batch of events
expressions  the stack machine that filters run on
events       RDF text → term ids and events
terms        texts ↔ ids, plain literals and their values
memory       bytes, numbers and arrays at addresses
compiling    how Numba compiles all this
ahead        a program that compiles what a first run needs
"""
