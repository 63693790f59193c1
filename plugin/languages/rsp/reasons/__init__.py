"""Why a query over windows has answers or not: reported for one instant, that at which it comes furthest.

    streams ─▶ history ─ asking.py ─▶ rows of the parts of WHERE at many instants ─ subject.py ─▶ languages/reasons

The parts are evaluated as the query itself is where it is not incremental: by Oxigraph, over a store that follows the
windows and holds what is queried from the knowledge base.
"""
