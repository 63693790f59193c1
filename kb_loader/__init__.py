"""Filling the knowledge base: RDF files, text and tables into a pyoxigraph store.

    files ─▶ a store in memory, for small ones (`load_file`, `load_text`)
    load  ─▶ a store on disk, for big ones: cleaned, reasoned over, counted; `append`: more into it;
              `rehearse`: what a load will find and take

It knows the engine's errors and how it reads Turtle with faults, and nothing else of it.
"""

from oxiseq.kb_loader.append import append
from oxiseq.kb_loader.files import is_path, load_file, load_text, open_kb
from oxiseq.kb_loader.graphs import DATASET, INFERRED, STATISTICS
from oxiseq.kb_loader.load import load
from oxiseq.kb_loader.rdfs import reason, remove_inferred
from oxiseq.kb_loader.rehearsal import Rehearsal, rehearse
from oxiseq.kb_loader.report import LoadReport, Progress
from oxiseq.kb_loader.void import describe

__all__ = [
    "DATASET",
    "INFERRED",
    "STATISTICS",
    "LoadReport",
    "Progress",
    "Rehearsal",
    "append",
    "describe",
    "is_path",
    "load",
    "load_file",
    "load_text",
    "open_kb",
    "reason",
    "rehearse",
    "remove_inferred",
]
