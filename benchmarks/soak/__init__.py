"""The soak: `python -m benchmarks.soak [--events N] [--report FILE]`, 100 million events unless told otherwise.

    events.py  an endless stream of coded events, drawn with a seed; some of their terms occur once
    count.py   how many matches there are, computed from the drawn numbers with NumPy alone
    watch.py   a stretch's figures; whether counts, memory and rate are as they should be

A sequence of eight steps joined on the machine, in a sliding window of one hour, runs over all events at once.
After each stretch its matches are compared with the count, and memory and rate are noted.
"""
