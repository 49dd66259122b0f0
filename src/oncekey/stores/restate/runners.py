"""Services by which Restate has executions run: each call goes to whoever runs them here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Protocol

import restate
from restate.exceptions import RetryableError

from oncekey.core.errors import OnceKeyError
from oncekey.stores.restate.brief import BriefContext
from oncekey.stores.restate.endpoint import Endpoint
from oncekey.stores.restate.objects import BYTES, JSON, retry_policy
from oncekey.stores.restate.stranded import Stranded
from oncekey.stores.restate.values import pack, unpack

log = logging.getLogger("oncekey")

RUN = "run"
# A process that stands still answers nothing, and keeps its connections: others are asked then.
_ABORT = timedelta(seconds=10)
# While nobody is there, everything that is ready is asked for in vain, again and again.
_LONGEST_PAUSE = timedelta(seconds=10)


class Runner(Protocol):
    """An engine of this process, as its store sees it."""

    def has(self, number: int) -> bool:
        """Whether the execution is here. Called in any thread."""
        ...

    async def activate(
        self, service: str, number: int, dispatch: int, *, again: bool
    ) -> float | None:
        """Run the execution that became ready under this dispatch. Answers after how many seconds
        somebody has to look after it again; None when nobody has to."""
        ...


class Runners:
    """A call is over before its execution is: as long as that runs, another call comes now and
    then, here or in another process, and finds out whether it still does. So no execution occupies
    Restate, however long its steps take."""

    def __init__(self, endpoint: Endpoint, stranded: Stranded) -> None:
        self._endpoint = endpoint
        self._stranded = stranded
        self._runners: dict[str, list[Runner]] = {}

    async def add(self, runner: Runner, names: Iterable[str]) -> None:
        """From now on Restate calls it for these."""
        for name in names:
            self._runners.setdefault(name, []).append(runner)
        await self._endpoint.serve(*(self._service_of(name) for name in names))

    async def remove(self, runner: Runner) -> None:
        """Restate tries its services again until somebody runs them, here or elsewhere."""
        for runners in self._runners.values():
            if runner in runners:
                runners.remove(runner)
        if not any(self._runners.values()):
            self._endpoint.rest()

    async def run(self, every: float) -> None:
        """Look after calls that others left, now and then."""
        while True:
            await asyncio.sleep(every)
            await self.run_once()

    async def run_once(self) -> None:
        """Calls for what is run here come here, also those that were others' to answer."""
        names = [name for name, runners in self._runners.items() if runners]
        try:
            if names:
                await self._stranded.call_back(names, self._endpoint.work_uri)
        except OnceKeyError:
            # That Restate is away is told by whoever gives it signs of life.
            pass
        except Exception:
            log.exception("calls of Restate that are left: a mistake of OnceKey's own")

    def _service_of(self, name: str) -> restate.Service:
        made = restate.Service(
            name,
            journal_retention=timedelta(0),
            abort_timeout=_ABORT,
            ingress_private=True,
            invocation_retry_policy=replace(retry_policy(), max_interval=_LONGEST_PAUSE),
        )

        async def run(ctx: BriefContext, body: bytes) -> bytes:
            number, dispatch, *again = unpack(body)
            # Of an attempt before this one Restate has heard that somebody has to look again.
            wait: float | None = 0.0
            if not ctx.is_replaying:
                runner = self._runner_of(name, number)
                wait = await runner.activate(name, number, dispatch, again=bool(again))
            if wait is not None:
                ctx.send(name, RUN, pack([number, dispatch, 1]), wait)
            return pack(None)

        run.__annotations__ = {"body": bytes, "return": bytes}
        run.is_brief = True  # type: ignore[attr-defined]
        made.handler(RUN, accept="*/*", content_type=JSON, input_serde=BYTES, output_serde=BYTES)(
            run
        )
        return made

    def _runner_of(self, name: str, number: int) -> Runner:
        """Raises when there is none: then Restate asks again, maybe elsewhere."""
        runners = self._runners.get(name)
        if not runners:
            raise RetryableError(f"no process at this address runs {name} now")
        return next((each for each in runners if each.has(number)), runners[-1])
