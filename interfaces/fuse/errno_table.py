"""What each kind of failure is called in `errno`.

1. The table is total: every `Kind` has a line, and a test says so.
2. What the lease cannot see is `ENOENT`, like what is not there; what it may not do is `EACCES`, `EROFS` or `EDQUOT`.
3. A lease that ended answers `EACCES`, not `EIO`: the disk is fine, the caller's authority is not.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from interfaces.faults import Kind

ERRNO: Final[Mapping[Kind, int]] = MappingProxyType(
    {
        Kind.INVALID: errno.EINVAL,
        Kind.UNAUTHENTICATED: errno.EACCES,
        Kind.DENIED: errno.EACCES,
        Kind.READ_ONLY: errno.EROFS,
        Kind.GATED: errno.EACCES,
        Kind.NOT_FOUND: errno.ENOENT,
        Kind.EXISTS: errno.EEXIST,
        Kind.NOT_A_DIRECTORY: errno.ENOTDIR,
        Kind.IS_A_DIRECTORY: errno.EISDIR,
        Kind.NOT_EMPTY: errno.ENOTEMPTY,
        Kind.INTO_ITSELF: errno.EINVAL,
        Kind.NAME_TOO_LONG: errno.ENAMETOOLONG,
        Kind.BUDGET: errno.EDQUOT,
        Kind.NO_SPACE: errno.ENOSPC,
        Kind.TOO_LARGE: errno.EFBIG,
        Kind.CONFLICT: errno.EBUSY,
        Kind.PRECONDITION: errno.EBUSY,
        Kind.KEY_REUSED: errno.EINVAL,
        Kind.THROTTLED: errno.EAGAIN,
        Kind.EXPIRED: errno.EACCES,
        Kind.REVOKED: errno.EACCES,
        Kind.UNSUPPORTED: errno.EOPNOTSUPP,
        Kind.NOT_PERMITTED: errno.EPERM,
        Kind.NO_ATTRIBUTE: errno.ENODATA,
        Kind.STALE: errno.ESTALE,
        Kind.LOOP: errno.ELOOP,
        Kind.TOO_MANY_LINKS: errno.EMLINK,
        Kind.BUSY: errno.EBUSY,
        Kind.UNAVAILABLE: errno.EIO,
        Kind.CORRUPT: errno.EIO,
        Kind.INTERNAL: errno.EIO,
    }
)
"""The number a system call fails with, for every kind."""
