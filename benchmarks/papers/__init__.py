"""The five papers' evaluations, figure by figure: `python -m benchmarks.papers [--only spaseq-17] [--quick]`.

    made.py            seeded data of the same make as the papers'
    spaseq.py, rsepql.py, epsparql.py, core.py, spectra.py   a paper each: its figures, how they are measured
    figures.py         a figure, its curves, what was published (published.toml), growth from first to last x
    page.py            a page per paper: picture, table, what is the same and what is not

A published value is a shape beside ours and never part of a ratio: machines and data are others. Each figure counts its
matches a second time, on a prefix, by other means.
"""
