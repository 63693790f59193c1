"""Windows of graph events: conjunctive patterns answered incrementally (windows.md, semantics.md section 6).

    window.py    which events are in the window at an instant
    plan.py      queries → views, filters, what is left to the caller
    tables.py    the flat arrays that the kernels read
    memory.py    the running state: allocation and growth
    run.py       event batches in; new, ended and all rows out
    sources.py   several windows at once: events merged into instants
    saved.py     the running state, saved and restored

Conjunctive queries over one stream and one window share one plan, and so their views:

    plan = compile_windows([ConjunctiveQuery(patterns, filters)], terms)
    run = WindowRun(plan, terms, Window(range=1_000, slide=1, counted=True), Report.NEW | Report.ENDED)
    for batch in batches:
        answers = run.push(batch)
        answers.time, answers.new[0].at, answers.new[0].values, answers.ended[0]...
"""
