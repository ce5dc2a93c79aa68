"""Protocols: each folder is one door to the same room."""
