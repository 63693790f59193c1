"""What every runner of sequences shares outside its kernels: the room for matches, and the choice of a strategy."""
