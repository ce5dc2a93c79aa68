"""Accounts: what runs act with outside, without ever seeing a secret."""
