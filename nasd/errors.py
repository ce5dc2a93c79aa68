"""What can go wrong in the composition itself, before there is a request to answer."""

from __future__ import annotations


class StartError(Exception):
    """The appliance cannot be set up or started. Carries a sentence and what to do next."""

    def __init__(self, message: str, hint: str = "") -> None:
        """Say what happened and (`hint`) what to do."""
        super().__init__(message)
        self.message = message
        self.hint = hint


class Misconfigured(StartError):
    """A setting is unknown, unreadable or of the wrong form."""


class NotInitialised(StartError):
    """The data directory holds no appliance yet."""


class Exposed(StartError):
    """Somebody else could reach the policy, the keys, the record or the trees."""


class AlreadyInitialised(StartError):
    """The data directory holds an appliance already."""


class AlreadyRunning(StartError):
    """Another daemon owns the data directory."""


class RolledBack(StartError):
    """A signed checkpoint kept outside proves that records are gone: an old copy was put back, or the end was cut off."""


class CannotImport(StartError):
    """What should be imported is not a directory or git repository that can be trusted."""
