"""Running operators: each takes the rows of its inputs and puts its results into a buffer."""
