"""A door held to a model: whatever is put, made, removed, copied and moved, statuses and tree are what the standard says."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.interfaces.webdav.dav import D, Dav, DavHouse

Path = tuple[str, ...]
Tree = dict[Path, bytes | None]
"""What stands at a path: bytes of a file, None for a collection."""

PATHS = st.lists(st.sampled_from(["a", "b", "é &"]), min_size=1, max_size=3).map(tuple)
CONTENT = st.binary(max_size=20)


def below(tree: Tree, path: Path) -> list[Path]:
    return [other for other in tree if len(other) > len(path) and other[: len(path)] == path]


def remove(tree: Tree, path: Path) -> None:
    for other in [path, *below(tree, path)]:
        tree.pop(other, None)


class DoorMachine(RuleBasedStateMachine):
    """One branch below a collection `m`, and the model of it."""

    start: Callable[[], Dav]

    @initialize()
    def begin(self) -> None:
        self.dav = type(self).start()
        self.tree: Tree = {}
        assert self.dav.mkcol("m").status == 201

    def url(self, path: Path) -> str:
        return "/".join(["m", *path]).replace("é &", "%C3%A9%20%26")

    def parent_is_there(self, path: Path) -> bool:
        return len(path) == 1 or (path[:-1] in self.tree and self.tree[path[:-1]] is None)

    @rule(path=PATHS, content=CONTENT)
    def put(self, path: Path, content: bytes) -> None:
        status = self.dav.put(self.url(path), content).status
        if not self.parent_is_there(path):
            assert status == 409
        elif path in self.tree and self.tree[path] is None:
            assert status == 405
        else:
            assert status == (204 if path in self.tree else 201)
            self.tree[path] = content

    @rule(path=PATHS)
    def make(self, path: Path) -> None:
        status = self.dav.mkcol(self.url(path)).status
        if not self.parent_is_there(path):
            assert status == 409
        elif path in self.tree:
            assert status == 405
        else:
            assert status == 201
            self.tree[path] = None

    @rule(path=PATHS)
    def delete(self, path: Path) -> None:
        assert self.dav.delete(self.url(path)).status == (204 if path in self.tree else 404)
        remove(self.tree, path)

    @rule(method=st.sampled_from(["COPY", "MOVE"]), source=PATHS, aim=PATHS, overwrite=st.booleans())
    def transfer(self, method: str, source: Path, aim: Path, overwrite: bool) -> None:
        status = self.dav.transfer(method, self.url(source), self.url(aim), overwrite="T" if overwrite else "F").status
        assert status == self.expected(source, aim, overwrite)
        if status not in {201, 204}:
            return
        carried = {aim + path[len(source) :]: self.tree[path] for path in [source, *below(self.tree, source)]}
        remove(self.tree, aim)
        if method == "MOVE":
            remove(self.tree, source)
        self.tree |= carried

    def expected(self, source: Path, target: Path, overwrite: bool) -> int:
        if source not in self.tree:
            return 404
        if not self.parent_is_there(target):
            return 409
        if source[: len(target)] == target or target[: len(source)] == source:
            return 403
        if target in self.tree:
            return 204 if overwrite else 412
        return 201

    @invariant()
    def the_tree_is_the_model(self) -> None:
        if not hasattr(self, "dav"):
            return
        for collection in [(), *(path for path, content in self.tree.items() if content is None)]:
            url = self.url(collection)
            answer = self.dav.find(url, "D:resourcetype", "D:getcontentlength", depth="1")
            told = {href.removeprefix(self.dav.base).rstrip("/") for href in answer.responses()}
            assert told == {url, *(self.url(path) for path in self.tree if path[:-1] == collection)}
        for path, content in self.tree.items():
            if content is not None:
                assert self.dav.get(self.url(path)).body == content
                size = self.dav.find(self.url(path), "D:getcontentlength").properties(self.dav.href(self.url(path)))
                assert size[f"{D}getcontentlength"].text == str(len(content))


@pytest.mark.slow
def test_the_door_does_what_the_standard_says(door: DavHouse) -> None:
    machine = type("Machine", (DoorMachine,), {"start": staticmethod(lambda: door.start()[1])})
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    run_state_machine_as_test(
        machine, settings=settings(max_examples=25, stateful_step_count=20, deadline=None, suppress_health_check=checks)
    )
