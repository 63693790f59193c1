"""Filling the knowledge base, in one process: RDF files and text into a pyoxigraph store.

It knows the engine's errors and nothing else of it.
"""

from oxiseq.kb_loader.files import is_path, load_file, load_text, open_kb

__all__ = ["is_path", "load_file", "load_text", "open_kb"]
