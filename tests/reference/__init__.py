"""The plain reference: semantics.md sections 1, 2 and 7 written down, slowly and in the open.

It shares no code with the engine; from `oxiseq` it takes the algebra and the parser only. Files, in the
order of the flow: `streams` (what is seen at all) → `patterns` (a GPM's mappings on one event) →
`sequences` (matches) → `suppression` (which of them are emitted) → `output` (rows); `permute` reads what the grammar
does not, `values` knows FILTER, `sparql_text` writes patterns for the store.
"""
