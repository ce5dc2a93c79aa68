"""What is told of gates: ids, names that owners gave, times and counts. Pure.

1. Nothing an agent wrote, no path, no content, no secret: a message travels through systems that nobody here has judged, and is read on
   locked screens. The card is behind the command that each line names.
2. Many events are one message.
3. A failed delivery is tried again after longer and longer, for about a day.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from nasd.durations import render_time

MOST_LINES = 20
MOST_TRIES = 30
_FIRST_PAUSE = 10
_LONGEST_PAUSE = 3600
_TITLES = {"asked": "waits for an answer", "expired": "was not answered in time", "bypassed": "asks nobody for a while"}
_TOLD = ("event", "gate", "kind", "rule", "run", "asked_by", "required_role", "approvals", "fallback", "files", "deletes", "by")


def pause_after(tries: int) -> int:
    """Return the seconds until a delivery that failed `tries` times is tried again."""
    return min(_LONGEST_PAUSE, _FIRST_PAUSE << min(tries - 1, 20))


def title_of(events: Sequence[Mapping[str, Any]]) -> str:
    """Return the subject of a message about some events."""
    asked = sum(event["event"] == "asked" for event in events)
    if len(events) == 1:
        return f"Agent NAS: {_name(events[0])} {_TITLES[events[0]['event']]}"
    return f"Agent NAS: {asked} questions wait for an answer" if asked == len(events) else f"Agent NAS: {len(events)} events of gates"


def text_of(events: Sequence[Mapping[str, Any]]) -> str:
    """Return the body of a message about some events."""
    lines = [_line(event) for event in events[:MOST_LINES]]
    if len(events) > MOST_LINES:
        lines.append(f"... and {len(events) - MOST_LINES} more: nas gate list --state pending")
    return "\n".join(lines)


def document_of(events: Sequence[Mapping[str, Any]], now: int) -> bytes:
    """Return what a webhook is told, as JSON."""
    told = [{name: event[name] for name in _TOLD if event.get(name) is not None} | _times(event) for event in events]
    return json.dumps({"type": "gates", "timestamp": render_time(now), "data": {"events": told}}, sort_keys=True).encode()


def _times(event: Mapping[str, Any]) -> dict[str, str | None]:
    return {name: render_time(event[name]) for name in ("at", "deadline", "expires") if event.get(name) is not None}


def _name(event: Mapping[str, Any]) -> str:
    return f"rule {event['rule']}" if event["event"] == "bypassed" else f"gate {event['gate']}"


def _line(event: Mapping[str, Any]) -> str:
    if event["event"] == "bypassed":
        return f"rule {event['rule']} asks nobody until {render_time(event['expires'])}, says {event['by']}: nas gate bypass"
    about = f"{event['kind']} by {event['asked_by']}" + (f" in run {event['run']}" if event.get("run") else "")
    size = f", {event['files']} files" + (f" ({event['deletes']} deleted)" if event.get("deletes") else "") if event.get("files") else ""
    if event["event"] == "expired":
        return f"gate {event['gate']}: {about}{size}: nobody answered in time: {event['fallback']}"
    people = f"{event['approvals']} people with the role" if event["approvals"] > 1 else "the role"
    return (
        f"gate {event['gate']}: {about}{size}; rule {event['rule']} asks {people} {event['required_role']} "
        f"until {render_time(event['deadline'])}: nas gate show {event['gate']}"
    )
