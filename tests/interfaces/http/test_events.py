"""What happens, heard over the wire."""

from __future__ import annotations

import http.client
import threading
from dataclasses import replace

from interfaces.http.events import render_event
from tests.interfaces.http.conftest import LIMITS, Site, open_site
from tests.interfaces.http.room import SECRET


class Listener:
    """One open stream."""

    def __init__(self, site: Site, target: str = "/v1/events", **headers: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=20)
        sent = {"Authorization": f"Bearer {SECRET}"} | {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request("GET", target, headers=sent)
        self.response = self.connection.getresponse()

    def hear(self) -> dict[str, str]:
        """Return the fields of the next event; a comment has the name of nothing."""
        fields: dict[str, str] = {}
        while line := self.response.readline().decode().rstrip("\n"):
            name, _, value = line.partition(": ")
            fields[name] = value
        return fields

    def hear_event(self) -> dict[str, str]:
        while not (heard := self.hear()).get("event"):
            assert "" in heard
        return heard

    def close(self) -> None:
        self.response.close()
        self.connection.close()


def test_events_are_heard_in_order_and_resume_where_a_client_stopped(site: Site) -> None:
    listener = Listener(site)
    assert listener.response.getheader("content-type") == "text/event-stream; charset=utf-8"
    assert listener.hear_event()["id"] == "0"
    site.room.happenings.put({"sequence": 8, "kind": "gate.asked", "text": "line\nbreak"})
    assert listener.hear_event() == {"id": "8", "event": "gate.asked", "data": '{"sequence":8,"kind":"gate.asked","text":"line\\nbreak"}'}
    listener.close()
    for target, headers, first in (
        ("/v1/events", {"Last_Event_ID": "8"}, "9"),
        ("/v1/events?after=4", {}, "5"),
        ("/v1/events?after=4", {"Last_Event_ID": "8"}, "9"),
    ):
        again = Listener(site, target, **headers)
        assert again.hear_event()["id"] == first
        again.close()


def test_silence_is_filled_with_heartbeats(site: Site) -> None:
    listener = Listener(site)
    listener.hear_event()
    assert [listener.hear() for _ in range(3)] == [{"": "heartbeat"}] * 3
    listener.close()


def test_a_place_that_is_no_sequence_is_refused(site: Site) -> None:
    for text in ("x", "1.5", "9" * 30):
        assert site.ask("GET", f"/v1/events?after={text}").status == 400
    for method in ("POST", "HEAD"):
        assert site.ask(method, "/v1/events").headers["allow"] == "GET"


def test_streams_are_bounded_and_a_client_that_left_makes_room() -> None:
    with open_site(replace(LIMITS, streams=3)) as site:
        listeners = [Listener(site) for _ in range(3)]
        for listener in listeners:
            listener.hear_event()
        refused = site.ask("GET", "/v1/events")
        assert (refused.status, refused.document["code"], refused.headers["retry-after"]) == (503, "unavailable", "1")
        listeners[0].close()
        while (again := Listener(site)).response.status != 200:
            again.close()
        for listener in (again, *listeners[1:]):
            listener.close()


def test_a_drain_ends_every_stream_cleanly() -> None:
    with open_site() as site:
        listener = Listener(site)
        listener.hear_event()
        heard: list[bytes] = []
        reader = threading.Thread(target=lambda: heard.append(listener.response.read()))
        reader.start()
    reader.join(10)
    listener.close()
    assert len(heard) == 1


def test_an_event_without_a_sequence_cannot_be_resumed_from() -> None:
    assert render_event("fault", {"code": "revoked"}) == b'event: fault\ndata: {"code":"revoked"}\n\n'
