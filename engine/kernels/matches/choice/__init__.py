"""Selection strategies: which of the complex events that end at one instant are kept (semantics.md 3).

In the flow: finals of an instant → **the finals that a strategy keeps** → enumeration. It knows compact sets and
nothing of the language that they come from: any engine may call it with

    nodes      the compact set (records.NODE, nodes.py); new nodes are put behind NODE_TOP, the caller takes
               them back (sets NODE_TOP to what it was) when the matches have been enumerated
    finals     nodes whose prefixes are the complex events, all of one cut: what starts before it is dead
    positions  row id + OFFSET → the position of the row's event; any numbers that rise with the stream will do. Of
               length 0: rows are positions. D is the set of the positions of a complex event's rows,
               but for those at the place SILENT (-1: there is none)

`picked` is then a list of nodes whose live prefixes are exactly the complex events kept; those with one D are kept
together. Nothing is enumerated: a complex event is a path, and what is better below a node stays better above it,
since all that comes later is shared. So each node keeps its best prefixes only:

    NEXT, LAST   one set of positions; one pass over the nodes that the finals reach
    MAX          those that no other one contains; these may be many, hence the limit

Sets of positions are interned as *classes* (classes.py). `choose.choose` is what Python calls, with a `ChoiceMemory`.
"""
