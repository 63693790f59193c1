"""Queries over windows as users see them: continuous SPARQL and RSEP-QL."""
