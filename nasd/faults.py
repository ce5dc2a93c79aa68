"""Errors of the contexts -> faults of the doors. One total table per context; no matching on text."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

import store.errors as stored
import trust.errors as trusted
from interfaces.faults import Fault, Kind
from trust.model import Decision, Denial, Effect

Method = TypeVar("Method", bound=Callable[..., Any])

STORE_KINDS: dict[type[stored.StoreError], Kind] = {
    stored.NotFound: Kind.NOT_FOUND,
    stored.Exists: Kind.EXISTS,
    stored.NotADirectory: Kind.NOT_A_DIRECTORY,
    stored.IsADirectory: Kind.IS_A_DIRECTORY,
    stored.NotEmpty: Kind.NOT_EMPTY,
    stored.InvalidName: Kind.INVALID,
    stored.IntoItself: Kind.INTO_ITSELF,
    stored.TooManyLinks: Kind.TOO_MANY_LINKS,
    stored.NotPermitted: Kind.NOT_PERMITTED,
    stored.Moved: Kind.CONFLICT,
    stored.ReadOnly: Kind.READ_ONLY,
    stored.Unsupported: Kind.UNSUPPORTED,
    stored.NoSpace: Kind.NO_SPACE,
    stored.TooLarge: Kind.TOO_LARGE,
    stored.Stale: Kind.STALE,
    stored.Corrupt: Kind.CORRUPT,
    stored.InUse: Kind.BUSY,
    stored.HostileTree: Kind.INVALID,
    stored.ImportFailed: Kind.INVALID,
    stored.StoreError: Kind.INTERNAL,
}

TRUST_KINDS: dict[type[trusted.TrustError], Kind] = {
    trusted.Unauthenticated: Kind.UNAUTHENTICATED,
    trusted.LeaseExpired: Kind.EXPIRED,
    trusted.LeaseRevoked: Kind.REVOKED,
    trusted.Unknown: Kind.NOT_FOUND,
    trusted.Taken: Kind.EXISTS,
    trusted.Widened: Kind.DENIED,
    trusted.WrongDoor: Kind.DENIED,
    trusted.HolderUnproven: Kind.DENIED,
    trusted.ScopeInvalid: Kind.INVALID,
    trusted.BudgetSpent: Kind.BUDGET,
    trusted.Disabled: Kind.DENIED,
    trusted.GateClosed: Kind.CONFLICT,
    trusted.AlreadyRefused: Kind.DENIED,
    trusted.TooManyQuestions: Kind.BUSY,
    trusted.GateMismatch: Kind.PRECONDITION,
    trusted.NotEntitled: Kind.DENIED,
    trusted.Outdated: Kind.CONFLICT,
    trusted.PolicyInvalid: Kind.INVALID,
    trusted.AccountInvalid: Kind.INVALID,
    trusted.RecorderUnavailable: Kind.UNAVAILABLE,
    trusted.ChainBroken: Kind.UNAVAILABLE,
    trusted.InUse: Kind.BUSY,
    trusted.TrustError: Kind.INTERNAL,
}

DENIAL_KINDS: dict[Denial, Kind] = {
    Denial.NONE: Kind.INTERNAL,
    Denial.POLICY: Kind.DENIED,
    Denial.LEASE_PATH: Kind.DENIED,
    Denial.LEASE_ACTION: Kind.DENIED,
    Denial.LEASE_PENDING: Kind.DENIED,
    Denial.LEASE_EXPIRED: Kind.EXPIRED,
    Denial.LEASE_REVOKED: Kind.REVOKED,
    Denial.BUDGET: Kind.BUDGET,
    Denial.PROTECTED: Kind.READ_ONLY,
    Denial.DISABLED: Kind.DENIED,
    Denial.LABEL: Kind.DENIED,
}

HINTS: dict[type[Exception], str] = {
    stored.Moved: "somebody else moved the branch; look at it again and repeat",
    stored.NoSpace: "free space below the data directory, or run `nas gc`",
    stored.Corrupt: "run `nas doctor`; restore the branch from an earlier commit or from a backup",
    trusted.Unauthenticated: "use the secret that `nas run start` or `nas token issue` printed",
    trusted.LeaseExpired: "start another run, or ask the owner for a longer lease",
    trusted.LeaseRevoked: "the lease was taken back; ask the owner",
    trusted.WrongDoor: "use it where it counts, or ask for a lease with --doors that include this one",
    trusted.HolderUnproven: "use it where the key can be proven: over SSH, or through a proxy that vouches for certificates",
    trusted.BudgetSpent: "ask the owner for a lease with a larger budget",
    trusted.GateClosed: "look at the gate again with `nas gate show`",
    trusted.AlreadyRefused: "do something else, or talk to whoever said no",
    trusted.TooManyQuestions: "wait for answers, or take questions back: nas gate withdraw",
    trusted.GateMismatch: "what the gate shows changed; read it again before answering",
    trusted.RecorderUnavailable: "nothing was done: free space below the data directory, then repeat",
    trusted.ChainBroken: "run `nas verify` and keep the data directory as it is",
}

_ERRNO_KINDS = {
    errno.ENOSPC: Kind.NO_SPACE,
    errno.EDQUOT: Kind.NO_SPACE,
    errno.EFBIG: Kind.TOO_LARGE,
    errno.EROFS: Kind.UNAVAILABLE,
    errno.EMFILE: Kind.UNAVAILABLE,
    errno.ENFILE: Kind.UNAVAILABLE,
}


def as_fault(error: Exception) -> Fault:
    """Return the fault for an error of a context or of the operating system; anything else is `Kind.INTERNAL`."""
    if isinstance(error, Fault):
        return error
    for kinds in (STORE_KINDS, TRUST_KINDS):
        for cls in type(error).__mro__:
            if kind := kinds.get(cls):
                return Fault(kind, str(error), hint=HINTS.get(cls, ""))
    if isinstance(error, OSError):
        kind = _ERRNO_KINDS.get(error.errno or 0, Kind.INTERNAL)
        return Fault(kind, error.strerror or str(error), hint="see the daemon's log")
    return Fault(Kind.INTERNAL, "something went wrong inside the appliance", hint="the daemon's log has the details")


def guarded(method: Method) -> Method:
    """Return the method with every error of the contexts and the system turned into a `Fault`."""

    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except (stored.StoreError, trusted.TrustError, OSError) as error:
            raise as_fault(error) from error

    return cast("Method", call)


def flatten(fault: Fault) -> dict[str, str]:
    """Return a fault as a document, for another process or another day."""
    return {"kind": fault.kind.value, "message": fault.message, "hint": fault.hint, "policy": fault.policy, "gate": fault.gate}


def revive(document: Mapping[str, str]) -> Fault:
    """Return the fault that `flatten` made a document of."""
    return Fault(Kind(document["kind"]), document["message"], hint=document["hint"], policy=document["policy"], gate=document["gate"])


def refusal(decision: Decision, subject: str) -> Fault:
    """Return the fault for a decision that is not to allow, naming what was asked (`subject`), the reason and the policy line."""
    kind = Kind.GATED if decision.effect is Effect.GATE else DENIAL_KINDS[decision.denial]
    return Fault(kind, f"{subject}: {decision.reason}", hint=decision.hint, policy=f"{decision.rule} ({decision.position})")
