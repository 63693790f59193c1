"""What may be wrong with a query that parses, pass by pass; `grammar/checks.py` lists them in their order."""
