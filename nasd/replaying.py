"""Recorded decisions, read from the record and taken again."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping

from trust.errors import PolicyInvalid, Unknown
from trust.policy.replay import Recorded, Replay, replay
from trust.policy.rules import CompiledPolicy
from trust.service import Trust


def replay_records(trust: Trust, proposed: CompiledPolicy | None, last: int | None = None) -> Replay:
    """Take the decisions of the last records (None: of all) again, and by a proposed policy as well where there is one."""

    @functools.cache
    def archive(digest: str) -> CompiledPolicy | None:
        try:
            return trust.archived_policy(digest)
        except (Unknown, PolicyInvalid):
            return None

    @functools.cache
    def standing(name: str) -> frozenset[str]:
        try:
            attributes = trust.principal(name).attributes
        except Unknown:
            return frozenset()
        return frozenset(role.strip() for role in attributes.get("roles", "").split(",") if role.strip())

    return replay(_decisions(trust, last), archive, proposed, standing)


def _decisions(trust: Trust, last: int | None) -> Iterator[Recorded]:
    """Yield the recorded decisions, oldest first; what was redacted is gone."""
    after = 0 if last is None else max(0, trust.head()[0] - last)
    for record in trust.records(after=after):
        judged = record.body.get("judged")
        if isinstance(judged, Mapping):
            yield Recorded(record.sequence, record.kind, judged)
