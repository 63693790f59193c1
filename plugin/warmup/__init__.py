"""What takes long once: modules are loaded (importing.py), kernels are compiled: all in advance (warmup.py), or when
they are first needed (first_run.py)."""
