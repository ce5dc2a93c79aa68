"""What can go wrong in a tree with history: one class per way of failing.

1. No numbers and no protocol words; ``nasd.faults`` maps each class to a kind, and each door maps kinds to its own terms.
2. Every error carries the name, path or id it is about, as the store knows it.
"""


class StoreError(Exception):
    """Anything the store refuses or cannot do."""

    def __init__(self, subject: object = "", why: str = "") -> None:
        """Keep what the failure is about (`subject`) and a sentence part saying `why`."""
        super().__init__(subject, why)
        self.subject = subject
        self.why = why

    def __str__(self) -> str:
        """Return the subject and the reason in one line."""
        subject = self.subject.decode("utf-8", "backslashreplace") if isinstance(self.subject, bytes) else str(self.subject)
        return f"{subject}: {self.why}" if self.why else subject


class NotFound(StoreError):
    """No such branch, commit, snapshot, name or extended attribute."""


class Exists(StoreError):
    """The name is taken."""


class NotADirectory(StoreError):
    """A directory was needed and something else is there."""


class IsADirectory(StoreError):
    """A file was needed and a directory is there."""


class NotEmpty(StoreError):
    """The directory still has entries."""


class InvalidName(StoreError):
    """A name that no tree may hold, or a branch name that cannot be one."""


class IntoItself(StoreError):
    """A directory cannot be moved below itself."""


class TooManyLinks(StoreError):
    """The node cannot take another name."""


class NotPermitted(StoreError):
    """The kind of node does not allow this operation (linking a directory, writing a special file)."""


class Moved(StoreError):
    """A compare-and-set lost: the branch is not where the caller believed it to be."""


class ReadOnly(StoreError):
    """The tree is a commit, a snapshot or a protected branch."""


class Unsupported(StoreError):
    """The engine does not declare the capability."""


class NoSpace(StoreError):
    """The disk below the store is full."""


class TooLarge(StoreError):
    """A file, a name or a value above the limit of the engine."""


class Stale(StoreError):
    """The node no longer has a place in the tree."""


class Corrupt(StoreError):
    """Stored bytes do not match their identity."""


class InUse(StoreError):
    """Another process owns the store."""


class HostileTree(StoreError):
    """An imported tree holds names or modes that no checkout can be trusted with."""


class ImportFailed(StoreError):
    """The source of an import cannot be read as a directory or a git repository."""
