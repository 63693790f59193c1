"""What every runner of sequences shares: the compact set, its enumeration, its collection, the choice of a strategy."""
