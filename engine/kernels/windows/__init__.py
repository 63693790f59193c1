"""Kernels of windows of graphs: views, their indexes, and the join of one entry with all that is stored."""
