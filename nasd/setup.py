"""Making an appliance out of an empty folder: store, trust, an owner, `main` with its policy, and what is imported into it.

1. Everything is made in a folder beside the target and moved there in one step: there is a whole appliance, or none.
2. What is imported is content. An imported ``.nas/policy.yaml`` never becomes the policy: the default one takes its place.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

from interfaces.port import Document
from nasd.config import Settings
from nasd.errors import AlreadyInitialised, CannotImport, StartError
from nasd.jobs import SERVICE
from nasd.paths import render_path
from nasd.policy_source import POLICY_PATH
from nasd.reach import overlap
from nasd.relabelling import Relabelling
from nasd.runs import MAIN
from nasd.wiring import Appliance, open_appliance
from store.contract import Progress, Working
from store.errors import HostileTree, ImportFailed, NotFound
from store.model import ROOT, Access, CommitId, EntryKind, ImportReport, NodeId, Note, Provenance
from trust.labels import DEFAULT, Label, parse_label
from trust.model import PrincipalKind
from trust.policy import default_policy

OWNER = "owner"
_SEED = "import"
EVERYWHERE = "**"
"""What is marked when an import is labelled: all of it, its history, and what comes beside it, which nobody could tell from it."""


def initialise(
    settings: Settings, import_from: str | None, progress: Progress, label: tuple[str | None, str | None] = (None, None)
) -> Document:
    """Make the appliance in ``settings.home`` and return what was made.

    `import_from` is a directory, a git repository or a git URL; what it brings is marked with `label`, by its
    origin and its sensitivity (None: as everything is). Raises `AlreadyInitialised`, `CannotImport`, `StartError`.
    """
    home = settings.home
    if settings.store.exists() or settings.trust.exists():
        raise AlreadyInitialised(
            f"{home} holds an Agent NAS already", hint="start it with `nas serve`, or name another folder with NAS_HOME"
        )
    if home.exists() and any(home.iterdir()):
        raise StartError(f"{home} is not empty", hint="name an empty or missing folder with NAS_HOME")
    scratch = home.with_name(f".{home.name}.{os.getpid()}.init")
    fresh = replace(settings, home=scratch)
    scratch.mkdir(parents=True, mode=0o700)
    try:
        document = _make(fresh, import_from, progress, parse_label(*label))
        if home.exists():
            home.rmdir()
        scratch.rename(home)
    except BaseException:
        shutil.rmtree(scratch)
        raise
    return document | {"home": str(home)}


def _make(settings: Settings, import_from: str | None, progress: Progress, label: Label) -> Document:
    for folder in (settings.store, settings.trust, settings.run, settings.log):
        folder.mkdir(mode=0o700)
    appliance = open_appliance(settings, "owner")
    try:
        now = appliance.now()
        appliance.trust.add_principal(OWNER, PrincipalKind.HUMAN, now, {"roles": OWNER})
        appliance.trust.add_principal(SERVICE, PrincipalKind.SERVICE, now)
        _, secret = appliance.trust.issue_token(OWNER, "command line of the first owner", None, now)
        write_secret(settings.owner_token_file, secret)
        report = _import(appliance, import_from, progress) if import_from else None
        head = _make_main(appliance, report)
        text = default_policy()
        digest = appliance.trust.adopt_policy(text, f"{POLICY_PATH.decode()}@{head[:12]}", now)
        body = {"main": head, "imported": import_from, "policy": digest}
        appliance.trust.state("init", None, body, now)
        if not label.within(DEFAULT):
            Relabelling(appliance).mark(None, EVERYWHERE, label)
        appliance.trust.flush()
        return {"owner": OWNER, "main": head, "policy": digest, "imported": _view_report(import_from, report)}
    finally:
        appliance.close()


def _import(appliance: Appliance, source: str, progress: Progress) -> ImportReport:
    path = Path(source.removeprefix("file://"))
    if relation := path.is_dir() and overlap(path.resolve(), appliance.settings.home.resolve()):
        raise CannotImport(f"cannot import {source}: it {relation}", hint="keep what agents get and what they must not reach apart")
    try:
        if path.is_dir() and not _is_git(path):
            note = Note(f"Import {path.name}", Provenance(OWNER), appliance.now())
            return appliance.engine.import_directory(path, _SEED, note, progress)
        return appliance.engine.import_git(source, _SEED, appliance.now(), progress)
    except (ImportFailed, HostileTree) as error:
        raise CannotImport(f"cannot import {source}: {error}", hint="name a directory, or a git repository or URL") from error


def _is_git(path: Path) -> bool:
    return (path / ".git").exists() or ((path / "objects").is_dir() and (path / "HEAD").is_file())


def _make_main(appliance: Appliance, report: ImportReport | None) -> CommitId:
    """Put the default policy on top of what was imported, make `main` of it, and return its head."""
    engine, now = appliance.engine, appliance.now()
    if report is None:
        engine.create_branch(_SEED, None, now)
    working = engine.working(_SEED)
    try:
        _write_policy(working, default_policy().encode())
    finally:
        working.close()
    engine.commit(_SEED, Note("The policy of this storage", Provenance(OWNER), now))
    head = engine.branch(_SEED).head
    engine.create_branch(MAIN, head, now, protected=True)
    engine.delete_branch(_SEED, head)
    return head


def _write_policy(working: Working, text: bytes) -> None:
    folder, name = POLICY_PATH.split(b"/")
    parent = _own_folder(working, folder)
    node = _existing(working, parent, name)
    if node is None:
        node = working.create(parent, name, 0o644).node
    handle = working.open(node, Access(read=False, write=True, truncate=True))
    try:
        handle.write(0, text)
    finally:
        handle.close()


def _own_folder(working: Working, name: bytes) -> NodeId:
    """Return a directory in the root; an imported file or symlink of that name makes way."""
    try:
        found = working.lookup(ROOT, name)
    except NotFound:
        return working.mkdir(ROOT, name, 0o755).node
    if found.kind is EntryKind.DIRECTORY:
        return found.node
    working.unlink(ROOT, name)
    return working.mkdir(ROOT, name, 0o755).node


def _existing(working: Working, parent: NodeId, name: bytes) -> NodeId | None:
    try:
        return working.lookup(parent, name).node
    except NotFound:
        return None


def _view_report(source: str | None, report: ImportReport | None) -> Document | None:
    if report is None:
        return None
    passed = {render_path(path): why for path, why in report.passed_over.items()}
    return {"from": source, "files": report.files, "bytes": report.bytes, "passed_over": passed}


def write_secret(path: Path, secret: str) -> None:
    """Write a secret to a file that nobody else can read, whole or not at all."""
    fresh = path.with_name(path.name + ".tmp")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as sink:
        sink.write(secret + "\n")
        sink.flush()
        os.fsync(sink.fileno())
    fresh.replace(path)


def ensure_owner_token(appliance: Appliance) -> None:
    """Issue another token for the owner's command line when its file is gone; the data does not depend on the file."""
    path = appliance.settings.owner_token_file
    if path.exists():
        return
    _, secret = appliance.trust.issue_token(OWNER, "command line, issued again at start", None, appliance.now())
    write_secret(path, secret)
    appliance.trust.state("token.reissue", None, {"principal": OWNER}, appliance.now())
