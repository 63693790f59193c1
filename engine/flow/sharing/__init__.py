"""Several plans as one (operators.md, 7).

opening.py     a plan without its constants, and the constants
lifting.py     a plan whose constants are in a table: its rows say for which row of the table they hold
widening.py    plans as they are, whose groups by one key are one
joining.py     plans → one plan in which equal operators are one, with a root for all plans that are alike
"""
