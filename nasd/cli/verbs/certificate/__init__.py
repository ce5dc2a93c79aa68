"""Certificates of clients that a declared proxy vouches for."""
