"""What queries are given: streams (sources.py) and knowledge bases (knowledge.py), and what is reported of events that
come late, are unfit, or that nobody reads (warned.py)."""
