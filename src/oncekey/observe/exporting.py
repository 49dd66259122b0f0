"""Traces to a collector: OTLP over HTTP, in batches, by a thread of the SDK."""

from __future__ import annotations

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

from oncekey.observe.metrics import own_version

_TIMEOUT = 5


def provider_of(endpoint: str, sample: float, service: str) -> TracerProvider:
    """`shutdown()` it in the end: what is gathered is sent then."""
    # It needs protobuf, which nobody else here does.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    resource = Resource.create({"service.name": service, "service.version": own_version()})
    provider = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(sample)), resource=resource, shutdown_on_exit=False
    )
    exporter = OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces", timeout=_TIMEOUT)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider
