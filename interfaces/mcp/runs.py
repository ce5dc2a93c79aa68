"""Tools about the run itself: status, commit, restore, history, diff, propose, proposals, gates.

1. Each is one operation of the API, decided and recorded as for any other client; what it answers is cut to what a model can use.
2. Nothing here answers a gate: that is for people, at another door.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from interfaces.mcp.paths import parse_path, render_path
from interfaces.mcp.reading import TOKEN_BYTES
from interfaces.mcp.room import Arguments, Room
from interfaces.mcp.tool import (
    BRANCH,
    COUNT,
    CURSOR,
    FLAG,
    MAYBE_TEXT,
    NAME,
    PATH,
    TEXT,
    Answer,
    Effect,
    Tool,
    described,
    gives,
    gives_page,
    limit,
    page,
    takes,
)
from interfaces.port import Document

DEFAULT_TOKENS = 8_000
MAX_TOKENS = 50_000

_HISTORY = 20
_SHOWN = 100
_MESSAGE = 2_000


def _status(room: Room, arguments: Arguments) -> Answer:
    if not (arguments.get("run") or room.caller.run):
        runs = room.call("run.list", state="active", limit=_SHOWN)
        return Answer({"principal": room.caller.principal, "run": None, "runs": runs["items"], "truncated": runs["truncated"]})
    found = room.call("run.show", run=room.run(arguments))
    changes: Sequence[Document] = found["uncommitted"]
    names = ("run", "role", "branch", "state", "purpose", "base", "head", "created")
    lease = describe_lease(room, found)
    document = {name: found.get(name) for name in names} | {
        "principal": room.caller.principal,
        "lease": lease,
        "uncommitted": [_brief_change(change) for change in changes[:_SHOWN]],
        "uncommitted_count": len(changes),
        "proposals": found["proposals"][-_SHOWN:],
        "truncated": len(changes) > _SHOWN,
    }
    return Answer(document)


def describe_lease(room: Room, run: Document) -> Document:
    """Return what the caller may do in a run: its own lease, which can be narrower than the run's, or the run's for a person."""
    caller = room.caller
    lease = room.call("lease.show", lease=caller.lease) if caller.lease else run["lease_detail"]
    known = {name: lease[name] for name in ("lease", "state", "paths", "actions", "expires", "budgets")}
    if caller.actions is None:
        return known
    # A lease may have been narrowed without asking anybody; the caller is what counts.
    return known | {"paths": list(caller.paths), "actions": sorted(caller.actions)}


def _commit(room: Room, arguments: Arguments) -> Answer:
    made = room.call("commit.make", branch=room.run(arguments), message=arguments["message"])
    return Answer(made, f"Committed {made['changed']} changes as {made['commit']}")


def _restore(room: Room, arguments: Arguments) -> Answer:
    paths = [render_path(parse_path(path)) for path in arguments["paths"]]
    made = room.call(
        "history.restore", branch=room.run(arguments), source=arguments["commit"], paths=paths, message=arguments.get("message") or None
    )
    return Answer(made, f"Restored {', '.join(paths)} from {arguments['commit']} as {made['commit']}")


def _history(room: Room, arguments: Arguments) -> Answer:
    found = room.call(
        "history.log",
        branch=room.branch(arguments),
        path=arguments.get("path") or None,
        limit=arguments.get("limit", _HISTORY),
        cursor=arguments.get("cursor"),
    )
    commits = [_brief_commit(commit) for commit in found["items"]]
    lines = [f"{item['commit'][:12]} {item['when']} {item['principal']}: {item['message'].partition(chr(10))[0]}" for item in commits]
    return Answer(page(commits, found["next"]), "\n".join(lines) or "(no commits)", _more(found["next"]))


def _diff(room: Room, arguments: Arguments) -> Answer:
    patched = arguments.get("patch", True)
    found = room.call("history.diff", **_compared(room, arguments), path=arguments.get("path") or None, patch=patched)
    changes = sorted(found["items"], key=lambda change: str(change["path"]))
    start = bisect_right(changes, arguments.get("cursor", ""), key=lambda change: str(change["path"])) if "cursor" in arguments else 0
    shown = _within(changes[start:], arguments.get("max_tokens", DEFAULT_TOKENS) * TOKEN_BYTES)
    cursor = shown[-1]["path"] if shown and start + len(shown) < len(changes) else None
    document = page(shown, cursor) | {"changed_files": len(changes)}
    return Answer(document, "\n".join(map(_render_change, shown)) or "(no differences)", _more(cursor))


def _compared(room: Room, arguments: Arguments) -> dict[str, Any]:
    if "from" in arguments or "to" in arguments:
        return {"old": arguments.get("from", "main"), "new": arguments.get("to") or room.branch({})}
    if arguments.get("uncommitted"):
        return {"branch": room.run(arguments)}
    return {"run": room.run(arguments)}


def _within(changes: Sequence[Document], budget: int) -> list[Document]:
    """Return the first changes that fit into a budget of bytes; a patch too large for what is left is cut, and says so."""
    shown: list[Document] = []
    for change in changes:
        brief = _brief_change(change) | ({"patch": change["patch"]} if "patch" in change else {})
        size = len(json.dumps(brief, ensure_ascii=False).encode())
        if size > budget and shown:
            break
        if size > budget:
            patch = str(brief.get("patch") or "").encode()[: max(budget - 500, 0)].decode("utf-8", "ignore")
            brief |= {"patch": patch, "patch_cut": True}
        shown.append(brief)
        budget -= size
    return shown


def _render_change(change: Document) -> str:
    head = f"{change['kind']} {change['path']}" + (f" (from {change['origin']})" if change["origin"] else "")
    cut = "\n[this patch is cut: read the file]" if change.get("patch_cut") else ""
    return f"{head}\n{change['patch']}{cut}" if change.get("patch") else head


def _propose(room: Room, arguments: Arguments) -> Answer:
    made = room.call("proposal.make", run=room.run(arguments), message=arguments["message"])
    text = f"{made['decision']}: {made['reason']}" + (f"\nA person is asked: gate {made['gate']}." if made.get("gate") else "")
    return Answer(made, text)


def _proposals(room: Room, arguments: Arguments) -> Answer:
    if "proposal" in arguments:
        return Answer(page([room.call("proposal.show", proposal=arguments["proposal"])], None))
    found = room.call("proposal.list", run=_own(room, arguments), limit=arguments.get("limit", _HISTORY), cursor=arguments.get("cursor"))
    return Answer(page(found["items"], found["next"]), "", _more(found["next"]))


def _gates(room: Room, arguments: Arguments) -> Answer:
    if "gate" in arguments:
        shown = room.call("gate.show", gate=arguments["gate"], wait=arguments.get("wait"), closed=True if "wait" in arguments else None)
        return Answer(page([shown], None), _render_gate(shown))
    found = room.call(
        "gate.list",
        run=_own(room, arguments),
        state=arguments.get("state"),
        limit=arguments.get("limit", _HISTORY),
        cursor=arguments.get("cursor"),
    )
    lines = [_render_gate(gate) for gate in found["items"]]
    return Answer(page(found["items"], found["next"]), "\n".join(lines) or "(no gates)", _more(found["next"]))


def _render_gate(gate: Document) -> str:
    line = f"{gate['gate']} {gate['state']} about {gate['subject']}, answer until {gate['deadline']}"
    told = ((name, gate.get(name)) for name in ("answered_by", "comment", "successor", "outcome"))
    return line + "".join(f"; {name.replace('_', ' ')} {value}" for name, value in told if value)


def _own(room: Room, arguments: Arguments) -> str | None:
    return arguments.get("run") or room.caller.run or None


def _brief_change(change: Document) -> Document:
    return {name: change.get(name) for name in ("kind", "path", "origin", "old_size", "new_size")}


def _brief_commit(commit: Document) -> Document:
    names = ("commit", "parents", "principal", "on_behalf_of", "run", "when")
    return {name: commit.get(name) for name in names} | {"message": str(commit["message"])[:_MESSAGE]}


def _more(cursor: str | None) -> str:
    return f"[There is more: repeat with cursor {cursor!r}]" if cursor else ""


_RUN = described(NAME, "A run; default: your own.")
_CHANGE = {"kind": NAME, "path": TEXT, "origin": MAYBE_TEXT}
_PROPOSE = frozenset({"propose"})
_WAIT = {"type": "integer", "minimum": 1, "maximum": 25}

TOOLS = (
    Tool(
        name="status",
        title="Status of the run",
        description=(
            "Tells about your run: branch, what your lease allows (paths, actions, end, budgets and what is spent of them), what is not"
            " committed yet, proposals. A person without a run gets the active runs."
        ),
        effect=Effect.READS,
        takes=takes(run=_RUN),
        gives=gives(principal=NAME, run=MAYBE_TEXT, truncated=FLAG),
        run=_status,
    ),
    Tool(
        name="commit",
        title="Commit",
        description="Commits what changed on the run's branch. Changes are also committed by themselves after a while.",
        effect=Effect.ADDS,
        takes=takes({"message": described(TEXT, "What changed and why.") | {"maxLength": 65536}}, run=_RUN),
        gives=gives(commit=NAME, branch=NAME, changed=COUNT),
        run=_commit,
        needs=frozenset({"write"}),
    ),
    Tool(
        name="restore",
        title="Restore",
        description="Puts files or directories back to what a commit holds, as one more commit; the rest of the work is committed before.",
        effect=Effect.REPLACES,
        takes=takes({"commit": NAME, "paths": {"type": "array", "items": PATH, "minItems": 1, "maxItems": 100}}, run=_RUN, message=TEXT),
        gives=gives(commit=NAME, changed=COUNT),
        run=_restore,
        needs=frozenset({"read", "write", "delete"}),
        idempotent=True,
    ),
    Tool(
        name="history",
        title="History",
        description="Lists the commits of a branch, newest first; with path those that changed it.",
        effect=Effect.READS,
        takes=takes(branch=BRANCH, path=PATH, limit=limit(_HISTORY, _SHOWN), cursor=CURSOR),
        gives=gives_page(commit=NAME, message=TEXT, principal=TEXT, when=MAYBE_TEXT),
        run=_history,
        needs=frozenset({"list"}),
    ),
    Tool(
        name="diff",
        title="Differences",
        description=(
            "Shows what the run's commits change against main, or with uncommitted what is not committed yet, or what lies between the"
            " commits or branches from and to."
        ),
        effect=Effect.READS,
        takes=takes(
            run=_RUN,
            uncommitted=FLAG,
            **{"from": described(NAME, "A commit or branch; default: main."), "to": described(NAME, "A commit or branch; default: yours.")},
            path=PATH,
            patch=described(FLAG, "With the changed lines; default: true."),
            max_tokens={"type": "integer", "minimum": 200, "maximum": MAX_TOKENS, "default": DEFAULT_TOKENS},
            cursor=CURSOR,
        ),
        gives=gives_page(**_CHANGE),
        run=_diff,
        needs=frozenset({"list"}),
    ),
    Tool(
        name="propose",
        title="Propose the run's work",
        description=(
            "Commits what is left and proposes the branch for main. The policy decides: merged, gated (a person is asked; see gates),"
            " refused or conflict, each with its reason."
        ),
        effect=Effect.ADDS,
        takes=takes({"message": described(TEXT, "What the work does and why, for who judges it.") | {"maxLength": 65536}}, run=_RUN),
        gives=gives(proposal=NAME, run=NAME, decision=NAME, state=NAME, reason=TEXT),
        run=_propose,
        needs=_PROPOSE,
    ),
    Tool(
        name="proposals",
        title="Proposals",
        description="Lists the proposals of the run with what was decided, or shows one.",
        effect=Effect.READS,
        takes=takes(run=_RUN, proposal=NAME, limit=limit(_HISTORY, _SHOWN), cursor=CURSOR),
        gives=gives_page(proposal=NAME, decision=NAME, state=NAME, reason=TEXT),
        run=_proposals,
        needs=_PROPOSE,
    ),
    Tool(
        name="gates",
        title="Questions that wait for a person",
        description=(
            "Lists the gates of the run and how they stand, or shows one with its card. People answer them, not this tool. With wait it"
            " answers once a gate is approved, rejected, expired, lapsed, withdrawn or superseded, and that is carried out."
        ),
        effect=Effect.READS,
        takes=takes(
            run=_RUN,
            gate=NAME,
            state={"type": "string", "maxLength": 40},
            wait=described(_WAIT, "With gate: seconds to wait for its end."),
            limit=limit(_HISTORY, _SHOWN),
            cursor=CURSOR,
        ),
        gives=gives_page(gate=NAME, state=NAME, digest=NAME, deadline=MAYBE_TEXT),
        run=_gates,
    ),
)
