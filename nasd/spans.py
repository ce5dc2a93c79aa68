"""Records as spans and log lines of OpenTelemetry, and the way to a collector. The only module that imports its packages."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib.metadata import version

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from trust.model import Record

Act = tuple[Record, Record]
"""An intent and its outcome."""
_NANO = 1_000_000_000
_FAILED = frozenset({"failed", "unknown", "undone"})
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


class OtlpCollector:
    """A collector that speaks OTLP over HTTP."""

    def __init__(self, endpoint: str, home: str, patience: float) -> None:
        """Send to ``<endpoint>/v1/traces`` and ``/v1/logs``, waiting `patience` seconds for each answer."""
        release = version("agent-nas")
        self._resource = Resource({"service.name": "agent-nas", "service.version": release, "service.instance.id": home})
        self._scope = InstrumentationScope("agent-nas.record", release)
        self._spans = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces", timeout=patience)
        self._logs = OTLPLogExporter(endpoint=f"{endpoint.rstrip('/')}/v1/logs", timeout=patience)

    def send(self, acts: Sequence[Act], facts: Sequence[Record]) -> bool:
        """Send acts as spans and facts as log lines, and tell whether all of them arrived."""
        if acts and self._spans.export([self._span(*act) for act in acts]) is not SpanExportResult.SUCCESS:
            return False
        return not facts or self._logs.export([self._line(fact) for fact in facts]) is LogRecordExportResult.SUCCESS

    def close(self) -> None:
        """Give up what is under way."""
        self._spans.shutdown()  # type: ignore[no-untyped-call]
        self._logs.shutdown()  # type: ignore[no-untyped-call]

    def _span(self, intent: Record, outcome: Record) -> ReadableSpan:
        result = str(outcome.body.get("result", ""))
        code = StatusCode.ERROR if result.partition(":")[0] in _FAILED else StatusCode.OK
        return ReadableSpan(
            intent.kind,
            SpanContext(_trace_id(intent), _span_id(intent), is_remote=False, trace_flags=_SAMPLED),
            resource=self._resource,
            attributes=_attributes(intent) | {"nas.outcome": int(outcome.sequence), "nas.result": result},
            kind=SpanKind.INTERNAL,
            status=Status(code),
            start_time=intent.time * _NANO,
            end_time=outcome.time * _NANO,
            instrumentation_scope=self._scope,
        )

    def _line(self, fact: Record) -> ReadableLogRecord:
        refused = fact.kind == "denied"
        line = LogRecord(
            timestamp=fact.time * _NANO,
            observed_timestamp=fact.time * _NANO,
            trace_id=_trace_id(fact),
            span_id=_span_id(fact),
            trace_flags=_SAMPLED,
            severity_text="WARN" if refused else "INFO",
            severity_number=SeverityNumber.WARN if refused else SeverityNumber.INFO,
            body=fact.kind,
            attributes=_attributes(fact),
        )
        return ReadableLogRecord(line, self._resource, self._scope)


def _attributes(record: Record) -> dict[str, str | int]:
    """Return what is told of a record: numbers, names and kinds, never what it was about."""
    told: dict[str, str | int] = {
        "nas.sequence": int(record.sequence),
        "nas.hash": record.hash,
        "nas.kind": record.kind,
        "nas.principal": record.principal,
        "nas.run": record.run,
        "nas.lease": record.lease,
        "nas.rule": str(record.body.get("rule", "")),
    }
    if record.run:
        told |= {"gen_ai.operation.name": "execute_tool", "gen_ai.agent.name": record.principal, "gen_ai.conversation.id": record.run}
    return {name: value for name, value in told.items() if value != ""}


def _trace_id(record: Record) -> int:
    """Return the trace of a record: its run, or itself."""
    return int.from_bytes(hashlib.sha256(f"nas-trace\0{record.run or record.hash}".encode()).digest()[:16], "big")


def _span_id(record: Record) -> int:
    return int.from_bytes(bytes.fromhex(record.hash)[:8], "big")
