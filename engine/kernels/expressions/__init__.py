"""The stack machine that filters run on."""
