"""What queries are given: streams (sources.py) and knowledge bases (knowledge.py), and what is reported of events that
come late (late.py), are unfit (ignored.py), or that nobody reads (unread.py)."""
