"""The load on Spark: statements, quarantine, reasoning and counts as in one process, for what is too big for that.

    pieces of files ─▶ cleaning: valid statements as N-Quads lines ─▶ parts: sorted, each once ─▶ reasoning, counting
    ─▶ the store, by Oxigraph's bulk load of the parts

Python does what the plain loader's functions do (reading, checking, the store's form of literals); joins, sorting and
counting are Spark's, and no data comes to the driver but the schema, the counts and the faults.
"""
