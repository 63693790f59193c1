"""Kernels of delta operators: rows that come and go (operators.md)."""
