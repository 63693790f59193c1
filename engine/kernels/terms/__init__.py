"""Terms: texts ↔ ids, plain literals and their values."""
