"""Events: RDF graphs with a time, as columns of term ids; their readers and writers."""
