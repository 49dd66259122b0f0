"""The service `Workflows`: executions started, seen, listed and controlled."""

from __future__ import annotations

from oncekey.api.grpc import oncekey_pb2 as pb
from oncekey.api.grpc.deadline import bounded
from oncekey.api.grpc.door import Call, Door, answered
from oncekey.api.grpc.messages import control_message, entry_message, execution_message, fitting
from oncekey.api.grpc.oncekey_pb2_grpc import WorkflowsServicer
from oncekey.api.grpc.requests import json_in, page_size_in, wait_in, word_in
from oncekey.core.errors import InvalidInput
from oncekey.core.execution import Execution, Sort, Status, execution_number_of
from oncekey.core.work import Action, ListExecutions
from oncekey.durable.engine import Engine, OnFailed


class Workflows(WorkflowsServicer):
    def __init__(self, engine: Engine, door: Door) -> None:
        self.door = door
        self._engine = engine

    @answered
    async def Start(self, request: pb.StartRequest, call: Call) -> pb.StartResponse:
        return await self._start(Sort.WORKFLOW, request, call)

    @answered
    async def StartTask(self, request: pb.StartRequest, call: Call) -> pb.StartResponse:
        return await self._start(Sort.TASK, request, call)

    @answered
    async def Get(self, request: pb.GetExecutionRequest, call: Call) -> pb.Execution:
        execution: Execution | None = None
        asked = wait_in(request)
        if asked:
            seconds = bounded(asked, call.seconds_left)
            waiting = self._engine.wait(call.tenant, request.id, seconds)
            execution = await self.door.patience.wait(waiting)
        if execution is None:
            execution = await self._engine.execution(call.tenant, request.id)
        return execution_message(execution)

    @answered
    async def Journal(self, request: pb.JournalRequest, call: Call) -> pb.JournalResponse:
        after, size = _step_in(request.page_token), page_size_in(request.page_size)
        entries = await self._engine.journal(call.tenant, request.id)
        numbered = list(enumerate(entries, 1))[after : after + size]
        page = list(fitting(entry_message(*each) for each in numbered))
        seen = after + len(page)
        return pb.JournalResponse(
            entries=page, next_page_token=str(seen) if page and seen < len(entries) else ""
        )

    @answered
    async def List(
        self, request: pb.ListExecutionsRequest, call: Call
    ) -> pb.ListExecutionsResponse:
        size = page_size_in(request.page_size)
        query = ListExecutions(
            call.tenant,
            word_in("status", request.status, Status),
            request.name or None,
            word_in("kind", request.kind, Sort),
            _before_in(request.page_token),
            # One more than is shown tells whether there is another page.
            size + 1,
        )
        found = await self._engine.executions(query)
        page = list(fitting(execution_message(each) for each in found[:size]))
        more = len(page) < len(found)
        return pb.ListExecutionsResponse(
            executions=page, next_page_token=page[-1].id if page and more else ""
        )

    @answered
    async def Cancel(self, request: pb.ControlRequest, call: Call) -> pb.ControlResponse:
        return await self._control("cancel", request, call)

    @answered
    async def Resume(self, request: pb.ControlRequest, call: Call) -> pb.ControlResponse:
        return await self._control("resume", request, call)

    @answered
    async def Fork(self, request: pb.ForkRequest, call: Call) -> pb.ControlResponse:
        from_step = request.from_step if request.HasField("from_step") else 1
        if from_step < 1:
            raise InvalidInput("from_step is the number of a step in the journal; the first is 1")
        return await self._control("fork", request, call, from_step)

    async def _start(self, sort: Sort, request: pb.StartRequest, call: Call) -> pb.StartResponse:
        execution, created = await self._engine.start(
            call.tenant,
            sort,
            request.name,
            json_in("input_json", request.input_json),
            key=call.key("key", request.key),
            on_failed=_on_failed_in(request.on_failed),
        )
        return pb.StartResponse(execution=execution_message(execution), created=created)

    async def _control(
        self,
        action: Action,
        request: pb.ControlRequest | pb.ForkRequest,
        call: Call,
        from_step: int | None = None,
    ) -> pb.ControlResponse:
        key = call.key("request_key", request.request_key) or ""
        answer = await self._engine.control(
            call.tenant, action, request.id, key, from_step=from_step
        )
        return control_message(answer)


def _on_failed_in(text: str) -> OnFailed:
    if text in {"", "keep"}:
        return "keep"
    if text == "free":
        return "free"
    raise InvalidInput(f"on_failed {text!r} is not one of keep, free")


def _step_in(token: str) -> int:
    if token and not (token.isascii() and token.isdigit() and len(token) <= 9):
        raise InvalidInput("page_token is not the next_page_token of a journal")
    return int(token or 0)


def _before_in(token: str) -> int | None:
    if not token:
        return None
    found = execution_number_of(token)
    if found is None:
        raise InvalidInput("page_token is not the next_page_token of a list")
    return found[1]
