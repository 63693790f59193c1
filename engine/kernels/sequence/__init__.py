"""A query's runs over the compact set."""
