"""Who may do what, to which branch, until when, and the record of it."""

from trust.service import Trust

__all__ = ["Trust"]
