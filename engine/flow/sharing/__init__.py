"""Several plans as one (operators.md, 7).

lifting.py     a plan without its constants; with these in a table: its rows say for which row of the table they hold
joining.py     plans → one plan in which equal operators are one, with a root for all plans that are alike
"""
