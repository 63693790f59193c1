"""From runs' row ids to answers.

rows.py     the rows that matches still refer to
write.py    scopes, KB enrichment, DISTINCT
compute.py  SELECT expressions
batch.py    matches as columns
"""
