"""Continuous queries as an operator of Spark's Structured Streaming. The only place that imports pyspark.

    rows of events ─ decode ─ deal by key ─ shuffle ─ a bucket's run, its snapshot in Spark's state ─ rows of matches
"""
