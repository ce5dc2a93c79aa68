"""Passwords for single programs."""
