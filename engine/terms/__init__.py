"""Terms as numbers: normal form, typed values, the dictionary that gives every term an id."""
