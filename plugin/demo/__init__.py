"""The demonstration: two of the SPAseq paper's queries on real stock quotes.

show.py: real quotes → events → `oxiseq.run` with the two queries and companies.nq → tables.
`python -m oxiseq.demo FILE` writes the events to a file, for `oxiseq run`.
"""

from oxiseq.demo.show import show

__all__ = ["show"]
