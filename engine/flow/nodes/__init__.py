"""Operators at work: each takes what its inputs hold, and leaves in a buffer what comes of it."""
