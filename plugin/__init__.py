"""Oxiseq."""
