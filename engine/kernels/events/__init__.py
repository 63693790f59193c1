"""RDF text → term ids and events."""
