"""Kernels of complex event automata: many runs in one pass, over the compact set of `kernels/sequence`."""
