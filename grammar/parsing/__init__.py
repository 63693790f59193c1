"""lark's grammars, and parse tree → algebra: SPARQL's part, the clauses of both languages, SPAseq, CEQL."""
