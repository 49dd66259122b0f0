"""The traces of workflows: one each, with what their steps trace, kept or not as a whole."""

import asyncio

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

import oncekey
from oncekey import App, Context
from oncekey.observe.meter import Meter
from oncekey.observe.traces import Tracing, context_of
from oncekey.observe.watch import RequestWatch


class Studio:
    """Where spans are gathered, as an application has it."""

    def __init__(self, sample: float = 1.0) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(sampler=ParentBased(TraceIdRatioBased(sample)))
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = self.provider.get_tracer("the-application")

    def named(self, name: str) -> list[ReadableSpan]:
        return [each for each in self._exporter.get_finished_spans() if each.name == name]


async def run_orders(studio: Studio, count: int = 1) -> list[str]:
    """Workflows that are started, and whose promises are resolved, inside of requests."""
    app = App()

    async def work() -> None:
        with studio.tracer.start_as_current_span("work"):
            pass

    @app.workflow
    async def order(ctx: Context, number: int) -> None:
        await ctx.run("before", work)
        await ctx.promise("paid", key=f"paid-{number}")
        await ctx.run("after", work)

    watch = RequestWatch(Meter(), tracing=Tracing(studio.provider))
    ids = []
    ledger = oncekey.open("memory://", observer=watch)
    async with app.open(ledger):
        for number in range(count):
            with studio.tracer.start_as_current_span("request"):
                started = await app.start(order, number)
            ids.append(started.id)
            with studio.tracer.start_as_current_span("request"):
                await app.resolve(f"key:paid-{number}", park=True)
            await started.result()
    ledger.close()
    return ids


def test_steps_are_in_the_trace_of_their_workflow() -> None:
    studio = Studio()
    (workflow,) = asyncio.run(run_orders(studio))
    home = context_of(int(workflow.removeprefix("wf_"), 16))
    steps = studio.named("work")
    assert len(steps) == 2
    assert {each.context.trace_id for each in steps} == {home.trace_id}
    assert {each.context.trace_id for each in studio.named("resume order")} == {home.trace_id}
    assert home.trace_id not in {each.context.trace_id for each in studio.named("request")}
    assert not trace.get_current_span().get_span_context().is_valid


@pytest.mark.parametrize("sample, kept", [(0.0, {False}), (0.5, {True, False}), (1.0, {True})])
def test_a_sample_is_of_whole_workflows(sample: float, kept: set[bool]) -> None:
    studio = Studio(sample)
    ids = asyncio.run(run_orders(studio, 24))
    resumed = {each.context.trace_id for each in studio.named("resume order")}
    worked = {each.context.trace_id for each in studio.named("work")}
    homes = [context_of(int(each.removeprefix("wf_"), 16)).trace_id for each in ids]
    assert worked == resumed
    assert {home in resumed for home in homes} == kept
