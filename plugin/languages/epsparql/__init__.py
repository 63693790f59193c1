"""EP-SPARQL as users see it: answers with intervals."""
