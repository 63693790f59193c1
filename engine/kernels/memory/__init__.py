"""What all kernels are built on.

pointers.py  the pointer table of a group of arrays; `Ptr[Group]`, its address, and views of its arrays
view.py      a view: an array that a kernel has the address of
pointed.py   arrays of a pointer table by number
hashing.py   hashes of rows and keys
slots.py     hash tables of numbers
growing.py   room for more
numbers.py   integers
raw.py       bytes and numbers at addresses; scan.py: searches in them
"""
