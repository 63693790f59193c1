"""How kernels are compiled: options, parts, ahead of the first call."""
