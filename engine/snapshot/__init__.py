"""Queries at work as bytes, and back: for checkpoints, and for state that another process continues with.

container.py  arrays and numbers ↔ bytes: framing, compression, checksum
plans.py      fingerprints of plans
saving.py     `save`, `restore`
"""
