"""Rows as events: what a stream says of the JSON, CSV and SenML that is pushed to it, and of tables of logs.

declared.py    a mapping as it is written, in JSON or Python, and checked
               (of which some have a name: SOSA, SenML, ECS, Home Assistant)
construct.py   the shorthand for flat rows, a CONSTRUCT query over columns ─▶ a plan (plan.py): terms of columns
rows.py        bodies, files and tables ─▶ columns; bad rows, one by one
times.py       the columns of the time ─▶ microseconds
events.py      columns ─▶ event batches: by the plan, and row by row by Oxigraph where it is unsure; a first mapping
               for a table, and what one makes of the first rows, as `oxiseq mapping` and POST /mappings show them
"""
