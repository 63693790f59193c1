"""The matches of one instant as a set that no longer changes: how many there are, the i-th, the best.

    finals ─freeze─▶ what is alive below them, children first ─count_ways─▶ matches below each ─find_best─▶ the k best

Nothing here lists matches: the cost is that of the live nodes, and for each match returned that of its length.
"""
