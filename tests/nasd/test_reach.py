"""Out of reach: a data directory that somebody else could reach is not opened, and the refusal says what to do."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path, PurePath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nasd.config import Settings
from nasd.doctor import examine
from nasd.errors import CannotImport, Exposed
from nasd.reach import Entry, Mounted, Survey, judge, overlap, parse_mounts, survey, unsafe_copy
from nasd.setup import initialise
from nasd.wiring import open_appliance

HOME = PurePath("/var/lib/nas")
DISK, ROOT = (8, 1), Mounted(PurePath("/"), PurePath("/"), (8, 1), "ext4")
SOUND = Survey(
    home=HOME,
    runner=900,
    way=[
        *(Entry(path, stat.S_IFDIR | 0o755, 0) for path in (PurePath("/"), PurePath("/var"), PurePath("/var/lib"))),
        Entry(HOME, stat.S_IFDIR | 0o700, 900),
    ],
    inside=[Entry(HOME / name, stat.S_IFDIR | 0o700, 900) for name in ("store", "trust", "run", "log")],
    secrets=[Entry(HOME / "trust/keys/1", stat.S_IFREG | 0o600, 900)],
    mounts=[ROOT],
)


def way_with(entry: Entry) -> Survey:
    return replace(SOUND, way=[*SOUND.way, entry])


def mount(point: str, kind: str = "ext4", root: str = "/", device: tuple[int, int] = (8, 2)) -> Survey:
    return replace(SOUND, mounts=[ROOT, Mounted(PurePath(point), PurePath(root), device, kind)])


def test_a_data_directory_as_it_should_be_gives_nothing_to_say() -> None:
    assert judge(SOUND) == []
    on_a_disk_of_its_own = mount("/var/lib/nas", "btrfs", "/@nas")
    assert judge(on_a_disk_of_its_own) == []


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (way_with(Entry(PurePath("/srv"), stat.S_IFDIR | 0o777, 0)), "others may write to /srv"),
        (way_with(Entry(PurePath("/srv"), stat.S_IFDIR | 0o775, 0)), "others may write to /srv"),
        (way_with(Entry(PurePath("/srv"), stat.S_IFDIR | 0o755, 1000)), "belongs to user 1000"),
        (way_with(Entry(PurePath("/srv"), stat.S_IFLNK | 0o777, 1000)), "belongs to user 1000"),
        (replace(SOUND, way=[Entry(HOME, stat.S_IFDIR | 0o750, 900)]), "open to others (mode 750)"),
        (replace(SOUND, way=[Entry(HOME, stat.S_IFDIR | 0o700, 0)]), "belongs to user 0"),
        (replace(SOUND, inside=[Entry(HOME / "store", stat.S_IFLNK | 0o777, 900)]), "is a symlink"),
        (replace(SOUND, inside=[Entry(HOME / "trust", stat.S_IFDIR | 0o700, 1000)]), "belongs to user 1000"),
        (replace(SOUND, inside=[Entry(HOME / "trust", stat.S_IFDIR | 0o770, 900)]), "others may write"),
        (replace(SOUND, secrets=[Entry(HOME / "owner.token", stat.S_IFREG | 0o640, 900)]), "holds a secret"),
        (replace(SOUND, secrets=[Entry(HOME / "owner.token", stat.S_IFLNK | 0o777, 900)]), "is a symlink"),
        (mount("/var/lib/nas/store", "tmpfs"), "lies over /var/lib/nas/store"),
        (mount("/var/lib", "fuse.agent-nas"), "inside a mounted branch"),
        (mount("/srv/shared", root="/var/lib/nas", device=DISK), "a second time"),
        (mount("/srv/shared", root="/var/lib/nas/trust", device=DISK), "a second time"),
        (replace(SOUND, copies=[HOME / "anchors"]), "in the data directory itself"),
    ],
)
def test_whatever_lets_somebody_else_in_stops_the_start(found: Survey, said: str) -> None:
    first = judge(found)[0]
    assert first.fatal
    assert said in first.what
    assert first.hint


@pytest.mark.parametrize(
    "found",
    [
        way_with(Entry(PurePath("/tmp"), stat.S_IFDIR | 0o1777, 0)),
        way_with(Entry(PurePath("/srv"), stat.S_IFLNK | 0o777, 0)),
        mount("/srv/other", root="/var/lib/nasty", device=DISK),
        mount("/srv/other", root="/var/lib/nas", device=(8, 9)),
        mount("/home/ana/work", "fuse.agent-nas"),
        mount("/var", "ext4", "/"),
        replace(SOUND, copies=[PurePath("/media/usb")]),
    ],
)
def test_what_lets_nobody_in_stops_nothing(found: Survey) -> None:
    assert judge(found) == []


def test_a_share_of_another_program_is_told_and_stops_nothing() -> None:
    for folder in ("/var/lib", "/var/lib/nas", "/var/lib/nas/store"):
        assert [finding.fatal for finding in judge(replace(SOUND, shared=[PurePath(folder)]))] == [False]
    assert judge(replace(SOUND, shared=[PurePath("/srv")])) == []


def test_a_copy_for_the_worst_day_is_not_kept_where_an_agent_writes() -> None:
    mounts = [ROOT, Mounted(PurePath("/work/run"), PurePath("/"), (0, 99), "fuse.agent-nas")]
    assert unsafe_copy(PurePath("/work/run/backup"), HOME, mounts)
    assert unsafe_copy(HOME / "backup", HOME, mounts)
    assert not unsafe_copy(PurePath("/work/runs/backup"), HOME, mounts)


def test_what_is_imported_neither_contains_the_data_directory_nor_lies_in_it() -> None:
    assert overlap(PurePath("/var/lib"), HOME) == "contains the data directory"
    assert overlap(HOME, HOME) == overlap(HOME / "store", HOME) == "is in the data directory"
    assert overlap(PurePath("/var/lib/nas2"), HOME) == ""


@given(st.lists(st.text(max_size=60)))
def test_any_lines_are_mounts_or_passed_over(lines: list[str]) -> None:
    parse_mounts(lines)


def test_mounts_are_read_as_the_kernel_writes_them() -> None:
    line = "36 35 98:0 /sub\\040dir /mnt/a\\134b rw,noatime master:1 - fuse.agent-nas nas rw\n"
    assert parse_mounts([line, "nonsense", ""]) == [Mounted(PurePath("/mnt/a\\b"), PurePath("/sub dir"), (98, 0), "fuse.agent-nas")]


# -- with a real directory ------------------------------------------------------------------------------------------------


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = Settings(home=tmp_path / "outer" / "home")
    (tmp_path / "outer").mkdir(mode=0o755)
    initialise(made, None, lambda *_: None)
    return made


def spoil_mode(settings: Settings) -> None:
    settings.home.chmod(0o755)


def spoil_way(settings: Settings) -> None:
    settings.home.parent.chmod(0o777)


def spoil_token(settings: Settings) -> None:
    settings.owner_token_file.chmod(0o644)


def spoil_key(settings: Settings) -> None:
    next((settings.trust / "keys").iterdir()).chmod(0o604)


def spoil_trust(settings: Settings) -> None:
    shutil.move(settings.trust, settings.home.parent / "elsewhere")
    settings.trust.symlink_to(settings.home.parent / "elsewhere")


@pytest.mark.parametrize("spoil", [spoil_mode, spoil_way, spoil_token, spoil_key, spoil_trust])
def test_the_daemon_does_not_open_what_somebody_else_could_reach_and_doctor_tells_why(
    settings: Settings, spoil: Callable[[Settings], None]
) -> None:
    open_appliance(settings, "owner").close()
    assert next(item for item in examine(settings)["items"] if item["check"] == "out of reach")["ok"]
    spoil(settings)
    with pytest.raises(Exposed) as caught:
        open_appliance(settings, "owner")
    assert caught.value.hint
    told = [item for item in examine(settings)["items"] if item["check"] == "reach"]
    assert caught.value.message in [item["detail"] for item in told]


def test_a_symlink_on_the_way_is_followed_and_what_it_leads_through_is_looked_at(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(settings.home.parent)
    named = Settings(home=tmp_path / "link" / "home")
    open_appliance(named, "owner").close()
    settings.home.parent.chmod(0o777)
    with pytest.raises(Exposed):
        open_appliance(named, "owner")


def test_an_import_that_contains_the_data_directory_is_refused_and_nothing_is_made(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "file").write_text("x")
    for named in (str(source), f"file://{source}"):
        with pytest.raises(CannotImport, match="contains the data directory"):
            initialise(Settings(home=source / "nas"), named, lambda *_: None)
        assert sorted(path.name for path in source.iterdir()) == ["file"]
    initialise(Settings(home=tmp_path / "beside"), str(source), lambda *_: None)


@pytest.fixture
def over(settings: Settings) -> Iterator[Callable[[str, Path], None]]:
    points: list[Path] = []

    def put(source: str, point: Path) -> None:
        command = ["mount", "-t", "tmpfs", "tmpfs", point] if source == "tmpfs" else ["mount", "--bind", source, point]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"cannot mount here: {done.stderr.strip()}")
        points.append(point)

    yield put
    for point in reversed(points):
        subprocess.run(["umount", point], check=True)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_file_system_over_a_part_of_it_and_a_second_way_to_it_are_found(
    settings: Settings, over: Callable[[str, Path], None], tmp_path: Path
) -> None:
    second = tmp_path / "second"
    second.mkdir()
    over(str(settings.trust), second)
    assert [finding.what for finding in judge(survey(settings)) if finding.fatal] == [
        f"{second} shows a part of the data directory a second time"
    ]
    over("tmpfs", settings.trust / "keys")
    assert f"a file system (tmpfs) lies over {settings.trust / 'keys'}" in [finding.what for finding in judge(survey(settings))]
    with pytest.raises(Exposed):
        open_appliance(settings, "owner")
