"""T4: names that are one name elsewhere, or look like another. CVE-2021-21300."""

from __future__ import annotations

import unicodedata
from contextlib import closing
from urllib.parse import quote

from tests.attacks.stand import Repository, Stand
from tests.contract.doors.clients.http import HTTP

LURE = "work/invoice\u202efdp.exe"
TWINS = (("work/Readme", "work/README"), (unicodedata.normalize("NFC", "work/caf\u00e9"), unicodedata.normalize("NFD", "work/caf\u00e9")))


def test_twins_wait_for_a_person_through_files_and_through_a_push(stand: Stand) -> None:
    for pair in TWINS:
        held = stand.start()
        with closing(HTTP.connect(stand, held)) as client:
            for number, path in enumerate(pair):
                client.create(_quoted(path), f"{number}\n".encode())
        proposed = stand.call("proposal.make", run=held.run, message="two names")
        assert proposed["state"] == "gated", (pair, proposed["reason"])
        gate = stand.call("gate.show", gate=proposed["gate"])
        assert "names that are the same name" in str(gate["card"])
    held = stand.start()
    with closing(Repository(stand, held)) as repository:
        one, two = repository.blob(b"1"), repository.blob(b"2")
        entries = [*repository.root(), ("100644", b"Zebra", one), ("100644", b"zebra", two)]
        tree = repository.tree(sorted(entries, key=lambda entry: entry[1] + (b"/" if entry[0] == "40000" else b"")))
        done = repository.push(repository.commit(tree))
        assert done.returncode == 0, done.stderr
        assert b"remote:" in done.stderr, "nobody was told of the twins"
    assert stand.call("proposal.make", run=held.run, message="two names")["state"] == "gated"


def test_a_name_that_repaints_what_is_around_it_is_shown_escaped(stand: Stand) -> None:
    held = stand.start()
    with closing(HTTP.connect(stand, held)) as client:
        client.create(_quoted(LURE), b"x")
        client.create(_quoted("work/\x1b[2Jclean"), b"x")
    stand.commit(held)
    for arguments in (("diff", held.run), ("log", held.run), ("run", "show", held.run)):
        printed = stand.nas.run(*arguments, expect=None).stdout
        assert "\u202e" not in printed and "\x1b[2J" not in printed, arguments


def _quoted(path: str) -> str:
    return quote(path)
