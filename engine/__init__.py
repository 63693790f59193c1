"""The engine: queries over streams of RDF graph events. No Flask, no Spark, no I/O but readers of events.

terms        RDF terms as numbers, in the store's normal form
events       RDF text, quads, tables → event batches (columns of term ids)
expressions  FILTER and SELECT expressions: exact, and compiled for columns
matching     graph patterns on events; the KB's answers
sequence     SEQ → automaton with live keys → runs over a compact set
plan         a query compiled
output       matches → answers
run          a query over its streams
snapshot     queries at work as bytes, and back
kernels      all the Numba
kb           the protocol to the knowledge base
"""
