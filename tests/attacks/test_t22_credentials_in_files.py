"""T22: a credential that lies in a file is found and used by an agent. PocketOS, 24 April 2026.

By their well-known names such files are out of reach at every door, to read and to write. Under another name a credential is bytes like
any others: what helps then is that an agent needs none, because it acts through accounts whose secrets it never sees.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.attacks.stand import TREE, Stand, open_stand
from tests.contract.doors.clients import OTHERS
from tests.contract.doors.clients.door import Door
from tests.contract.doors.clients.mount import MOUNT
from tests.contract.doors.model import Refused
from tests.contract.doors.skipping import each_of

KEY = b"sk-live-the-token-of-the-production-account"
LYING_AROUND = ("work/.env", ".env", "work/id_ed25519", "deploy/.aws/credentials", "work/.netrc", "work/tls-key.pem", "home/.kube/config")


@pytest.fixture(scope="module")
def littered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with open_stand(tmp_path_factory.mktemp("littered"), TREE | dict.fromkeys(LYING_AROUND, KEY)) as opened:
        yield opened


@pytest.mark.parametrize("door", each_of(*(door for door in OTHERS if door is not MOUNT)))
def test_no_door_gives_an_agent_a_credential_file(littered: Stand, door: Door) -> None:
    held = littered.start()
    with closing(door.connect(littered, held)) as client:
        for path in LYING_AROUND:
            with pytest.raises(Refused):
                client.read(path)
            with pytest.raises(Refused):
                client.copy(path, "work/innocent.txt")
        for path in ("work/copy/id_rsa", "work/new/.env"):
            with pytest.raises(Refused):
                client.create(path, b"put here to be merged")
        assert KEY not in b"".join(client.told)
    if not door.speaks_prose:  # what git does not show, nobody asks it for
        assert {denied["rule"] for denied in littered.denials(held)} == {"credentials-refused"}


def test_no_approval_lets_one_into_main(littered: Stand) -> None:
    held = littered.start()
    with littered.mounted(held) as place, pytest.raises(OSError):
        (place / "work" / "id_rsa").write_bytes(KEY)
    assert KEY not in str(littered.call("history.diff", run=held.run)).encode()
