"""Why a test of ceph/s3-tests does not pass: each failure has a reason, and one that has none is a defect. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Cause:
    """A reason, and the names of the tests (without module) that fail for it."""

    text: str
    pattern: str


CAUSES: Sequence[Cause] = (
    Cause(
        "The suite takes a header away that botocore puts back before it sends, so the refusal that the test waits for never happens; "
        "no server passes it.",
        r"test_(object|bucket)_create_bad_(authorization_(empty|none)|contentlength_none)",
    ),
    Cause(
        "Signature version 2 is not accepted (Amazon refuses it in new regions too); the test signs with it.",
        r".*_(aws2|v2)|test_.*post_object.*|test_object_checksum_.*post.*",
    ),
    Cause(
        "Encryption by a key of the server's is refused rather than claimed: nothing would hold the key that the disk does not. "
        "Encryption by a key of the client's (SSE-C) passes.",
        r"test_(copy_enc|copy_part_enc)\[.*sse-(s3|kms).*\]|test_(sse_(s3|kms)|(put|get|delete)_bucket_encryption|bucket_policy_put_obj_(s3|kms)).*",
    ),
    Cause(
        "There are no object locks: what is merged into `main` no lease can change, and history keeps every version.",
        r"test_object_lock_.*",
    ),
    Cause(
        "Lifecycle rules are refused rather than stored and not carried out; runs, branches and uploads end by their own rules.",
        r"test_lifecycle_.*",
    ),
    Cause(
        "Access is given by the policy and by leases, never by a bucket policy.",
        r"test_.*(policy|principal|public_block_deny|restrict_public|obj_public|iam_|ExistingTag|existing_tag).*"
        r"|test_(create_bucket|put_bucket_ownership)_(bucket_owner|object_writer).*",
    ),
    Cause(
        "Access is given by the policy and by leases, never by an ACL: nothing is public, nobody is anonymous, and an ACL that would "
        "say otherwise is refused or opens nothing.",
        r"test_.*(acl|access_bucket_public|access_bucket_private_object(v2)?_public|anon|grants|owner_preferred|raw_get|raw_authenticated).*"
        r"|test_(list_multipart_upload_owner|100_continue|expected_bucket_owner|object_delete_key_bucket_gone|cors_origin_(response|wildcard))",
    ),
    Cause(
        "What the caller cannot see does not exist: the test wants 403 where the answer is that of a bucket that was never made.",
        r"test_(access_bucket_private_object(v2)?_private|object_copy_not_owned.*|list_buckets_.*invalid_auth)",
    ),
    Cause("`main` is a bucket that everybody sees; the test counts on an empty list at first.", r"test_list_buckets_paginated"),
    Cause(
        "A part that is named twice is `InvalidPartOrder`, and an upload that was completed takes no more parts, as Amazon has it.",
        r"test_multipart_resend_first_finishes_last",
    ),
    Cause(
        "It tests an extension of Ceph's gateway (usage, unordered listing, object counts in headers, its own reading of a URI).",
        r"test_(account_usage|head_bucket_usage|bucket_head_extended|bucket_list(v2)?_unordered|object_read_unreadable|get_object_torrent|list_buckets_bad_auth)",
    ),
    Cause(
        "Ownership controls are there from the start (`BucketOwnerEnforced`), as Amazon makes them; Ceph's gateway begins with none.",
        r"test_create_bucket_no_ownership_controls",
    ),
    Cause("The suite itself needs accounts of Ceph's identity service.", r"test_.*(iam|account|cross).*"),
)
"""The reasons, the more particular first."""

UNKNOWN = "Not explained: a defect, or a test that is new."


def reason_of(test: str) -> str:
    """Return why a test (its name without module) fails."""
    return next((cause.text for cause in CAUSES if re.fullmatch(cause.pattern, test)), UNKNOWN)


def render_reasons(failed: Sequence[str], wanted: frozenset[str]) -> str:
    """Return a table of the failed tests by reason; those among `wanted` are printed in bold."""
    by_reason: dict[str, list[str]] = {}
    for test in failed:
        by_reason.setdefault(reason_of(test), []).append(f"**`{test}`**" if test in wanted else f"`{test}`")
    lines = [f"| {reason} | {len(tests)} | {', '.join(sorted(tests))} |" for reason, tests in by_reason.items()]
    return "\n".join(["| why | tests | which |", "|---|---|---|", *sorted(lines, key=lambda line: -int(line.split("|")[2]))])


def render_groups(of: Mapping[str, int], passed: Mapping[str, int]) -> str:
    """Return a table of the groups with what passed of them."""
    lines = [f"| {group} | {passed.get(group, 0)} of {count} |" for group, count in sorted(of.items())]
    return "\n".join(["| group | passed |", "|---|---|", *lines, f"| **all** | **{sum(passed.values())} of {sum(of.values())}** |"])
