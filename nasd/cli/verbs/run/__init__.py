"""Executions, each with its lease and its branch."""
