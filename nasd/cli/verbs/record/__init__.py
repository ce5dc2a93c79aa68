"""What was done, in a chain."""
