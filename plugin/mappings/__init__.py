"""Rows as events: what a stream says of the JSON, CSV and SenML that is pushed to it, and of tables of logs.

declared.py    a mapping as it is written, in JSON or Python, and checked
ready.py       mappings that have a name: SOSA, SenML, ECS, Home Assistant
flat.py        the shorthand for flat rows      ─┐
construct.py   a CONSTRUCT query over columns   ─┴─▶ a plan (plan.py): terms of columns (cells.py, terms_of.py)
rows.py        bodies, files and tables ─▶ columns; bad rows, one by one
times.py       the columns of the time ─▶ microseconds
suggesting.py  a first mapping for a table, for `oxiseq mapping suggest` and POST /mappings/suggest
trying.py      what a mapping makes of the first rows, for `oxiseq mapping try` and POST /mappings/try
events.py      columns ─▶ event batches: by the plan, and row by row by Oxigraph where it is unsure
"""
