"""What takes long once: kernels are compiled: all in advance, or when
they are first needed (first_run.py)."""
