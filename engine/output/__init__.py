"""From runs' row ids to answers: which value a variable has in a match, KB enrichment, the query's form."""
