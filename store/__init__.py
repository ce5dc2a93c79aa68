"""Versioned trees on branches; knows no one's name."""
