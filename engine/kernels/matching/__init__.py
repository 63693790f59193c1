"""Graph patterns on a batch of events."""
