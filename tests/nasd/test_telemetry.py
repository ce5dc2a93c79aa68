"""The record as spans and logs at a real collector (rotel, from its wheel), and at collectors that are gone, slow or refuse."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from nasd.telemetry import BATCH, Telemetry
from tests.nasd.conftest import House, build_house


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    built = build_house(tmp_path / "home", "reference")
    yield built
    built.appliance.close()


class Backend(ThreadingHTTPServer):
    """What stands behind the collector: takes OTLP over HTTP and keeps what it says. `status` and `delay` make it a bad one."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Requests)
        self.spans: list[Any] = []
        self.logs: list[Any] = []
        self.resources: list[dict[str, str]] = []
        self.status, self.delay, self.asked = 200, 0.0, 0
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Requests(BaseHTTPRequestHandler):
    server: Backend

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked += 1
        time.sleep(self.server.delay)
        if self.server.status == 200:
            self._take(content)
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _take(self, content: bytes) -> None:
        if self.headers.get("Content-Encoding") == "gzip":
            import gzip

            content = gzip.decompress(content)
        if self.path.endswith("/v1/traces"):
            for batch in ExportTraceServiceRequest.FromString(content).resource_spans:
                self.server.resources.append(attributes(batch.resource))
                self.server.spans += [span for scope in batch.scope_spans for span in scope.spans]
        else:
            for batch in ExportLogsServiceRequest.FromString(content).resource_logs:
                self.server.logs += [line for scope in batch.scope_logs for line in scope.log_records]

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def attributes(holder: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in holder.attributes}


@pytest.fixture
def backend() -> Iterator[Backend]:
    with Backend() as server:
        yield server
        server.shutdown()
        server.thread.join()


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as found:
        return int(found.getsockname()[1])


def until(holds: Callable[[], object], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


@pytest.fixture
def collector(backend: Backend, tmp_path: Path) -> Iterator[str]:
    """A rotel that takes OTLP and passes it on to the backend."""
    spec = find_spec("rotel")
    assert spec is not None and spec.submodule_search_locations
    program = Path(spec.submodule_search_locations[0]) / "rotel-agent"
    port, other = free_port(), free_port()
    arguments = ["start", "--otlp-http-endpoint", f"127.0.0.1:{port}", "--otlp-grpc-endpoint", f"127.0.0.1:{other}", "--exporter", "otlp"]
    arguments += ["--otlp-exporter-endpoint", backend.url, "--otlp-exporter-protocol", "http", "--batch-timeout", "100ms"]
    with (tmp_path / "rotel.log").open("wb") as output:
        child = subprocess.Popen([str(program), *arguments], stdout=output, stderr=output)
    try:
        until(lambda: answers(port))
        yield f"http://127.0.0.1:{port}"
    finally:
        child.terminate()
        child.wait(20)


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def telemetry(house: House, endpoint: str) -> Telemetry:
    return Telemetry(replace(house.appliance, settings=replace(house.appliance.settings, telemetry_endpoint=endpoint)))


def act(house: House, result: str = "done", **body: object) -> int:
    intent = house.trust.intend("merge", None, {"path": "secret/plan.txt", **body}, house.appliance.now())
    house.pass_time(3)
    house.trust.conclude(intent, {"result": result}, house.appliance.now())
    return int(intent)


def test_acts_are_spans_and_facts_are_log_lines_at_a_real_collector(house: House, backend: Backend, collector: str) -> None:
    run, secret = house.start()
    good, bad = act(house), act(house, "failed")
    house.trust.state("denied", house.holder(secret), {"path": "secret/plan.txt", "rule": "no-secrets"}, house.appliance.now())
    house.trust.intend("merge", None, {}, house.appliance.now())
    sending = telemetry(house, collector)
    assert sending.send_batch() and not sending.send_batch() and sending.position()[0] == house.trust.head()[0]
    until(lambda: {attributes(span).get("nas.sequence") for span in backend.spans} >= {good, bad} and backend.logs)
    spans = {attributes(span)["nas.sequence"]: span for span in backend.spans}
    assert {span.name for span in backend.spans} == {"principal.add", "run.start", "merge"} and len(spans) == len(backend.spans) == 4
    assert (spans[good].name, spans[good].status.code, spans[bad].status.code) == ("merge", 1, 2)
    assert spans[good].end_time_unix_nano - spans[good].start_time_unix_nano == 3 * 10**9
    started = next(span for span in backend.spans if span.name == "run.start")
    assert attributes(started)["nas.result"] == "done" and backend.resources[0]["service.name"] == "agent-nas"
    denied = next(line for line in backend.logs if line.body.string_value == "denied")
    told = attributes(denied)
    assert (denied.severity_text, told["nas.rule"], told["gen_ai.conversation.id"], told["gen_ai.agent.name"]) == (
        "WARN",
        "no-secrets",
        run.run,
        "coder",
    )
    everything = "".join(map(str, [*backend.spans, *backend.logs]))
    assert "plan.txt" not in everything and secret not in everything


def test_it_goes_on_where_it_stopped_and_ids_are_the_same_when_something_is_sent_twice(house: House, backend: Backend) -> None:
    act(house)
    assert telemetry(house, backend.url).send_batch()
    act(house)
    assert telemetry(house, backend.url).send_batch()
    assert len(backend.spans) == 2
    house.trust.put_document("telemetry", "position", {"sequence": 0}, 2)
    assert telemetry(house, backend.url).send_batch()
    assert len(backend.spans) == 4 and len({span.span_id for span in backend.spans}) == 2


def test_what_a_collector_does_not_take_is_sent_again(house: House, backend: Backend) -> None:
    for _ in range(BATCH):
        act(house)
    sending = telemetry(house, backend.url)
    backend.status = 400
    assert not sending.send_batch() and sending.failure and sending.position() == (0, 0)
    backend.status = 200
    while sending.send_batch():
        pass
    assert sending.failure == "" and len(backend.spans) == BATCH


@pytest.mark.parametrize("bad", ["gone", "slow"])
def test_a_bad_collector_keeps_nobody_waiting(house: House, backend: Backend, bad: str) -> None:
    backend.delay = 5.0
    sending = telemetry(house, backend.url if bad == "slow" else f"http://127.0.0.1:{free_port()}")
    act(house)
    sending.start()
    until(lambda: backend.asked or bad == "gone")
    before = time.monotonic()
    for _ in range(50):
        act(house)
    house.start()
    assert time.monotonic() - before < 4.0, "deciding and recording wait for a collector"
    sending.close()
    assert house.trust.verify().ok


def test_without_an_endpoint_nothing_is_sent(house: House) -> None:
    silent = telemetry(house, "")
    silent.start()
    assert not silent.send_batch() and silent.position() == (0, 0)
    silent.close()
