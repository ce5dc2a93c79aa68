"""Published injections as contents and messages: bytes that go in and out of every door as they are, labelled, obeyed by nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.attacks.stand import TREE, Stand, open_stand
from tests.contract.doors.clients import OTHERS
from tests.contract.doors.clients.door import Door
from tests.contract.doors.clients.git import GIT, Clone
from tests.contract.doors.clients.http import HTTP
from tests.contract.doors.skipping import each_of

pytestmark = pytest.mark.slow

TEXTS = json.loads((Path(__file__).with_name("data") / "injections.json").read_text(encoding="utf-8"))["texts"]
FILES = {f"inbox/corpus/{number}.txt": text.encode() for number, text in enumerate(TEXTS)}


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with open_stand(tmp_path_factory.mktemp("hostile"), TREE | FILES) as opened:
        yield opened


@pytest.mark.parametrize("door", each_of(*OTHERS))
def test_the_words_of_attackers_come_out_as_they_went_in_and_taint(stand: Stand, door: Door) -> None:
    held = stand.start(paths=["work/**", "inbox/**"])
    with closing(door.connect(stand, held)) as client:
        if door is GIT:
            assert isinstance(client, Clone)
            client.stat("inbox/corpus")  # one fetch brings all of them
            shown = {path: (client._tree / path).read_bytes() for path in FILES}
        else:
            shown = {path: client.read(path) for path in FILES}
    assert shown == FILES
    assert stand.taint(held) == "external/internal"
    assert stand.label(held.branch, "inbox/corpus/7.txt") == "external/internal"


def test_as_a_message_and_a_purpose_they_change_nothing_and_repaint_nothing(stand: Stand) -> None:
    rules, main = stand.call("policy.show")["hash"], stand.head()
    for text in TEXTS[::12]:
        run = stand.call("run.start", role="coder", paths=["work/**"], purpose=text[:200])
        with closing(HTTP.connect(stand, stand.start(paths=["work/**"]))) as client:
            client.write("work/a.txt", text.encode())
        printed = stand.nas.run("run", "show", run["run"]).stdout
        assert not [letter for letter in printed if (ord(letter) < 32 and letter != "\n") or letter in "\u202e\u2066\u200b"]
    assert (stand.call("policy.show")["hash"], stand.head()) == (rules, main)
