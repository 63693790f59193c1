"""Complex event automata: CEQL evaluated in constant time per event (CORE, PVLDB 2022; semantics.md 3).

    CeqlQuery ─plan.compile_ceql─▶ CeaPlan ─run.CeaRun─▶ FoundEvents

    positions   formula → position automaton: letters, and which may follow which
    subsets     its determinisation, one step at a time: (state, symbol) → marking and unmarking move
    cache       the steps made so far, in flat arrays that the kernel reads
    memory      arrays of the running state
    run         events with symbols in, complex events out
    held        which variables hold each position of a complex event
    choose      the strategies NEXT, LAST, MAX

An event comes as its **symbol**: the bits of the plan's atoms that it satisfies.
"""
