"""All the Numba: module-level functions over flat arrays, driven by tables, never generated per query."""
