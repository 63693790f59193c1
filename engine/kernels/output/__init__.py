"""Row ids of matches → answers and their texts."""
