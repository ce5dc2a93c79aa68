"""What can go wrong in trust: one class per way of failing.

1. No numbers and no protocol words. A message never holds a secret, a token or a key.
"""


class TrustError(Exception):
    """Anything trust refuses or cannot do."""

    def __init__(self, subject: object = "", why: str = "") -> None:
        """Keep what the failure is about (`subject`) and a sentence part saying `why`."""
        super().__init__(subject, why)
        self.subject = subject
        self.why = why

    def __str__(self) -> str:
        """Return the subject and the reason in one line."""
        return f"{self.subject}: {self.why}" if self.why else str(self.subject)


class Unauthenticated(TrustError):
    """No such secret, or it was revoked; the two are not told apart."""


class LeaseExpired(TrustError):
    """The lease ended by its own clock."""


class LeaseRevoked(TrustError):
    """The lease, or one it descends from, was revoked."""


class WrongDoor(TrustError):
    """The lease does not count at the door where it was shown."""


class HolderUnproven(TrustError):
    """The lease is bound to a key that the request does not prove to have."""


class Unknown(TrustError):
    """No such principal, token, lease, gate, policy, document or record."""


class Taken(TrustError):
    """The name or id is in use."""


class Widened(TrustError):
    """A narrowing that would widen: more paths, more actions, a later end, a larger budget."""


class ScopeInvalid(TrustError):
    """A lease that cannot be: no path, an action no lease carries, an end before its beginning, a negative budget."""


class BudgetSpent(TrustError):
    """A budget of the lease, or of one it descends from, does not cover the amount; nothing was charged."""


class Disabled(TrustError):
    """The principal may not act any more."""


class GateClosed(TrustError):
    """The gate was already answered, withdrawn or expired: the answer did not count."""


class GateMismatch(TrustError):
    """The answer or the use names another digest than the one that was shown."""


class AlreadyAnswered(GateClosed):
    """The person has said yes already; somebody else has to."""


class AlreadyRefused(TrustError):
    """Somebody said no to exactly this a short while ago; people are not asked again so soon."""


class TooManyQuestions(TrustError):
    """The run has as many questions waiting as people should have to look at."""


class NotEntitled(TrustError):
    """The principal does not have the role that the gate requires."""


class Outdated(TrustError):
    """A compare-and-set lost: the document is not at the version the caller read."""


class PolicyInvalid(TrustError):
    """A policy document does not compile. `diagnostics` lists every finding with its position."""

    def __init__(self, subject: object, why: str, diagnostics: tuple[object, ...] = ()) -> None:
        """Keep the diagnostics beside subject and reason."""
        super().__init__(subject, why)
        self.diagnostics = diagnostics


class AccountInvalid(TrustError):
    """An account that cannot be, or a request that the account does not let be made."""


class PatternInvalid(TrustError):
    """A path pattern that is not normalised or above a limit."""


class QuantityInvalid(TrustError):
    """A size or a duration that is not written as a number with a known unit."""


class FactsIncomplete(TrustError):
    """A recorded decision of which not all facts are known: it cannot be taken again."""


class KeyMissing(TrustError):
    """The key that a lease's secret hangs on is gone: the lease cannot be used, narrowed or verified any more."""


class RecorderUnavailable(TrustError):
    """The record cannot be written, so the act must not happen."""


class ChainBroken(TrustError):
    """Stored records do not verify; nothing more is appended until a person has looked."""


class NoteInvalid(TrustError):
    """What is no signed note, checkpoint or public key, or whose signature by a known key is wrong."""


class InUse(TrustError):
    """Another process owns what must have one owner."""
