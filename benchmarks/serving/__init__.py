"""How fast the live server is, over loopback: `python -m benchmarks.serving`."""
