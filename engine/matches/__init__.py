"""What every runner of sequences shares outside its kernels.

runner.py      the runner: it calls its kernel, drains matches, has a strategy choose
memory.py      the arrays that a runner's memory begins with, saved and restored too
found.py       matches as the kernel writes them
choice.py      NEXT, LAST, MAX
frozen.py      the matches of an instant as a set: how many, the i-th, the best; sampling.py: some at random
partitions.py  PARTITION BY: values ↔ numbers
"""
