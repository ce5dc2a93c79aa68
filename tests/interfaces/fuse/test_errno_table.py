"""Every kind of failure has its errno."""

from __future__ import annotations

import errno

import pytest

from interfaces.faults import Kind
from interfaces.fuse.errno_table import ERRNO


def test_the_table_is_total() -> None:
    assert set(ERRNO) == set(Kind)
    assert all(number in errno.errorcode for number in ERRNO.values())


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        (Kind.NOT_FOUND, errno.ENOENT),
        (Kind.DENIED, errno.EACCES),
        (Kind.GATED, errno.EACCES),
        (Kind.EXPIRED, errno.EACCES),
        (Kind.REVOKED, errno.EACCES),
        (Kind.READ_ONLY, errno.EROFS),
        (Kind.BUDGET, errno.EDQUOT),
        (Kind.NO_SPACE, errno.ENOSPC),
        (Kind.STALE, errno.ESTALE),
        (Kind.CORRUPT, errno.EIO),
    ],
)
def test_what_a_lease_meets_has_its_own_number(kind: Kind, number: int) -> None:
    assert ERRNO[kind] == number
