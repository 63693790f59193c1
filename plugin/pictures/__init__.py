"""Pictures for notebooks and files, as SVG in plain Python: automata (drawing.py) and timelines (timeline.py)."""
