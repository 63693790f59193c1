"""Bytes, numbers and arrays at addresses."""
