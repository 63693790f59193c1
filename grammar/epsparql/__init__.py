"""EP-SPARQL's dialect: its rules of reading and writing, its checks, its CONSTRUCT rules, its slips."""
