"""T7: what lies outside gets into the history by the back door. CVE-2026-27735, CVE-2026-44243."""

from __future__ import annotations

import errno
import hashlib
import os
from contextlib import closing
from pathlib import Path

import pytest

from tests.attacks.stand import LOOT, Repository, Stand
from tests.contract.doors.clients.s3 import S3, Bucket
from tests.contract.doors.model import Refused
from tests.e2e.conftest import needs_fuse


@needs_fuse
def test_a_mount_links_nothing_from_outside_into_the_tree(stand: Stand, tmp_path: Path) -> None:
    held = stand.start(paths=["work/**"])
    outside = tmp_path / "outside"
    outside.write_bytes(LOOT)
    with stand.mounted(held) as place:
        with pytest.raises(OSError) as linked:
            os.link(outside, place / "work" / "taken")
        assert linked.value.errno == errno.EXDEV
        (place / "work" / "pointer").symlink_to(outside)
    stand.commit(held)
    with closing(Repository(stand, held)) as repository:
        assert repository.git("cat-file", "-p", "FETCH_HEAD:work/pointer") == str(outside)
    assert LOOT not in (stand.nas.get_file(held.branch, "work/pointer") or b"")


def test_a_large_file_is_named_by_who_has_it_only(stand: Stand) -> None:
    held = stand.start(paths=["work/**"])
    digest = hashlib.sha256(LOOT + b" in the plan\n").hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {len(LOOT) + 13}\n".encode()
    with closing(Repository(stand, held)) as repository:
        attributes = repository.blob(b"*.bin filter=lfs diff=lfs merge=lfs -text\n")
        work = repository.tree([("100644", b".gitattributes", attributes), ("100644", b"x.bin", repository.blob(pointer))])
        repository.push(repository.commit(repository.tree([("40000", b"work", work)])))
        assert LOOT not in (stand.nas.get_file(held.branch, "work/x.bin") or b"")


def test_no_object_is_taken_by_naming_its_hash(stand: Stand) -> None:
    """A push that names an object which its sender cannot see would bring it into a place that it can."""
    held = stand.start(paths=["work/**"])
    content = LOOT + b" in the plan\n"
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    with closing(Repository(stand, held)) as repository:
        work = repository.tree([("100644", b"taken", blob)])
        commit = repository.commit(repository.tree([("40000", b"work", work)]))
        assert repository.push(commit).returncode != 0
    with closing(S3.connect(stand, held)) as client:
        assert isinstance(client, Bucket)
        for source in (f"/{client._bucket}/secret/plan.txt", "/main/secret/plan.txt", f"/{held.run}/secret/plan.txt"):
            with pytest.raises(Refused):
                client.ask("PUT", "work/taken", headers={"x-amz-copy-source": source})
    assert stand.nas.get_file(held.branch, "work/taken") is None
