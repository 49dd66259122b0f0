"""The Temporal that the other tests lean on keeps its word."""

import uuid

import pytest
from temporalio import workflow
from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from tests.fixtures.temporal_server import TemporalServer

pytestmark = pytest.mark.anyio


@workflow.defn
class Greeting:
    @workflow.run
    async def run(self, name: str) -> str:
        return f"hello {name}"


async def test_a_workflow_runs(temporal: str) -> None:
    client = await Client.connect(temporal)
    queue = str(uuid.uuid4())
    runner = UnsandboxedWorkflowRunner()
    async with Worker(client, task_queue=queue, workflows=[Greeting], workflow_runner=runner):
        said = await client.execute_workflow(Greeting.run, "anna", id=queue, task_queue=queue)
    assert said == "hello anna"


async def test_a_killed_server_comes_back_empty_at_the_same_address() -> None:
    server = TemporalServer()
    try:
        server.start()
        client = await Client.connect(server.address)
        await client.start_workflow(Greeting.run, "anna", id="one", task_queue="nobody")
        server.kill()
        assert not server.running
        server.start()
        client = await Client.connect(server.address)
        with pytest.raises(RPCError, match="not found"):
            await client.get_workflow_handle("one").describe()
    finally:
        server.close()
    assert not server.folder.path.exists()
