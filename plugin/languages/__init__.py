"""What the product does for each query language: a front a language, and the registry that finds it.

    front.py: what every language can do · spaseq.py, ceql.py: how · registry.py: which
"""
