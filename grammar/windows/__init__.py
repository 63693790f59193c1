"""The dialect of continuous SPARQL (RSP-QL, SPECTRA) and RSEP-QL: rules of reading and writing, checks, slips."""
