"""Credentials of principals."""
