"""RDF Messages: logs in which each message, an RDF dataset, is one event.

    text ─(announced: announced.py)─▶ whole messages as N-Quads (turtle.py, jsonld.py, lines.py)
         ─(columns.py)─▶ quads as ids ─(times.py)─▶ event batches          and back: writing.py

The draft is the W3C RSP community group's, *RDF Messages* (https://w3c-cg.github.io/rsp/spec/messages).
"""
