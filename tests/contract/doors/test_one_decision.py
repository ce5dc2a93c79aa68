"""Every door decides as the port does, tells it in its own words, and leaves the same behind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from interfaces.faults import Kind
from tests.contract.doors.clients import DOORS, OTHERS, TRUTHS
from tests.contract.doors.clients.door import Aspect, Door
from tests.contract.doors.clients.inside import REQUESTS
from tests.contract.doors.leases import TERMS, Standing
from tests.contract.doors.model import Allowed, Cell, Decided, Denied, Operation
from tests.contract.doors.skipping import each_of
from tests.contract.doors.survey import Survey, survey
from tests.contract.doors.table import BEGIN, END, render
from tests.e2e.conftest import needs_fuse
from trust.model import BudgetKind

PAGE = Path(__file__).resolve().parents[3] / "docs" / "conformance.md"
CHANGES = {Operation.WRITE, Operation.CREATE, Operation.APPEND, Operation.COPY, Operation.MOVE, Operation.DELETE}
COSTLESS = {Operation.LIST, Operation.STAT, Operation.MOVE, Operation.DELETE}
UNREAD = {Operation.LIST, Operation.STAT, Operation.DELETE}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Survey:
    return survey(tmp_path_factory.mktemp("doors"))


def expected(standing: Standing, operation: Operation) -> Kind | None:
    """Return the kind that an operation has to be refused with, None when it is to be allowed."""
    match standing:
        case Standing.ALLOWED:
            return None
        case Standing.HIDDEN:
            return Kind.NOT_FOUND
        case Standing.BESIDE:
            if operation in {Operation.WRITE, Operation.CREATE}:
                return Kind.DENIED
            return None if operation in {Operation.LIST, Operation.SEARCH} else Kind.NOT_FOUND
        case Standing.READ_ONLY:
            return Kind.DENIED if operation in CHANGES else None
        case Standing.REFUSED:
            return None if operation in UNREAD else Kind.DENIED
        case Standing.SPENT:
            return None if operation in COSTLESS else Kind.BUDGET
        case Standing.EXPIRED:
            return Kind.EXPIRED
        case Standing.REVOKED:
            return Kind.REVOKED


def cells(found: Survey, door: Door) -> Iterator[tuple[Standing, Operation, Cell, Cell]]:
    for standing in Standing:
        for operation in Operation:
            yield standing, operation, found.cells[door.name, standing, operation], found.truth(door, standing, operation)


def same_decision(cell: Cell, truth: Cell) -> bool:
    if isinstance(truth.decided, Allowed):
        return cell.decided == truth.decided
    return isinstance(cell.decided, Denied) and truth.decided.kinds <= cell.decided.kinds


def agree(aspect: Aspect, cell: Cell, truth: Cell) -> bool:
    match aspect:
        case Aspect.DECISION:
            return same_decision(cell, truth)
        case Aspect.RECORD:
            return cell.trace.denied == truth.trace.denied
        case Aspect.READS:
            return cell.trace.read == truth.trace.read
        case Aspect.FILES:
            return cell.trace.files == truth.trace.files


@pytest.mark.parametrize("door", each_of(*TRUTHS))
def test_the_port_decides_as_the_specification_says(found: Survey, door: Door) -> None:
    wrong = [
        f"{standing.value} {operation.value}: {cell.decided}"
        for standing, operation, cell, _ in cells(found, door)
        if (cell.decided.kinds if isinstance(cell.decided, Denied) else frozenset())
        != ({expected(standing, operation)} if expected(standing, operation) else frozenset())
    ]
    assert wrong == []


def test_the_port_records_what_it_denies_and_nothing_else(found: Survey) -> None:
    wrong = [
        f"{standing.value} {operation.value}: {sorted(cell.trace.denied)}"
        for standing, operation, cell, _ in cells(found, REQUESTS)
        if len(cell.trace.denied) != (expected(standing, operation) is Kind.DENIED) * (2 if TERMS[standing].twin else 1)
    ]
    assert wrong == []


@pytest.mark.parametrize("door", each_of(*OTHERS))
@pytest.mark.parametrize("aspect", Aspect, ids=lambda aspect: aspect.value)
def test_a_door_differs_from_the_port_only_where_its_protocol_makes_it(found: Survey, door: Door, aspect: Aspect) -> None:
    wrong = [
        f"{standing.value} {operation.value}: {cell.decided} {cell.trace}, and the port: {truth.decided} {truth.trace}"
        for standing, operation, cell, truth in cells(found, door)
        if agree(aspect, cell, truth) != (door.difference(aspect, standing, operation) is None)
    ]
    assert wrong == []


@pytest.mark.parametrize("door", each_of(*OTHERS))
def test_a_door_charges_what_the_port_charges(found: Survey, door: Door) -> None:
    charged = found.spent[door.name, Standing.ALLOWED]
    truth = found.spent[REQUESTS.name, Standing.ALLOWED]
    if door.more is None:
        assert truth.keys() <= {kind for kind, amount in charged.items() if amount}
    else:
        assert charged == {kind: amount + door.more.get(kind, 0) for kind, amount in truth.items()}


@pytest.mark.parametrize("door", each_of(*DOORS))
def test_what_is_refused_costs_nothing(found: Survey, door: Door) -> None:
    nothing_written = (Standing.HIDDEN, Standing.BESIDE, Standing.READ_ONLY, Standing.REFUSED, Standing.EXPIRED, Standing.REVOKED)
    written = {standing: found.spent[door.name, standing].get(BudgetKind.BYTES_WRITTEN, 0) for standing in nothing_written}
    assert written == dict.fromkeys(nothing_written, 0)
    assert not any(found.spent[door.name, Standing.SPENT].values())


@pytest.mark.parametrize("door", each_of(*DOORS))
def test_every_read_that_is_charged_is_in_the_manifest(found: Survey, door: Door) -> None:
    counted = {standing: {kind.value: amount for kind, amount in found.spent[door.name, standing].items()} for standing in Standing}
    assert {standing: counted[standing].get("reads", 0) for standing in Standing} == {
        standing: found.manifest[door.name, standing] for standing in Standing
    }


@pytest.mark.parametrize("door", each_of(*DOORS))
@pytest.mark.parametrize("standing", [Standing.HIDDEN, Standing.BESIDE], ids=lambda standing: standing.value)
def test_what_is_hidden_is_told_like_what_never_existed(found: Survey, door: Door, standing: Standing) -> None:
    terms = TERMS[standing]
    assert terms.twin is not None
    told = {operation: found.cells[door.name, standing, operation] for operation in Operation}
    never = {operation: found.never[door.name, standing, operation] for operation in Operation}
    assert unnamed(told, terms.root, terms.leaf) == unnamed(never, *terms.twin)


def unnamed(cells: Mapping[Operation, Cell], root: str, leaf: str) -> dict[Operation, tuple[Decided, list[bytes]]]:
    """Return what was decided and told without the name it is about, and without each answer's request id and time."""
    names = {root.encode(): b"(root)", leaf.encode(): b"(leaf)"}
    return {operation: (cell.decided, [_without(answer, names) for answer in cell.told]) for operation, cell in cells.items()}


def _without(answer: bytes, names: Mapping[bytes, bytes]) -> bytes:
    for header in (b"x-request-id", b"x-amz-request-id", b"x-amz-id-2", b"date"):
        for value in re.findall(rb"^" + header + rb": (.+)$", answer, re.MULTILINE):
            answer = answer.replace(value, b"(" + header + b")")
    for name, mark in names.items():
        answer = answer.replace(name, mark)
    return answer


@pytest.mark.parametrize("door", each_of(*(door for door in DOORS if not door.speaks_prose)))
def test_every_kind_has_a_word(door: Door) -> None:
    assert frozenset().union(*door.words.values()) == frozenset(Kind)


@needs_fuse
def test_the_page_shows_the_table_as_it_is(found: Survey) -> None:
    text = PAGE.read_text()
    shown = text[text.index(BEGIN) : text.index(END) + len(END)]
    assert shown == render(found), "run `python -m tests.contract.doors.table` and put what it prints into docs/conformance.md"
