"""Authorizations of runs."""
