"""Kernels of rows with intervals: their joins, and which of them are new."""
