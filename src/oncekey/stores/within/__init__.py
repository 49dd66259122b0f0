"""The caller's own transaction: claim and outcome go through its connection, so that effect and
outcome commit together or not at all. One set of steps, whatever the connection is."""

from __future__ import annotations

from typing import Any

from oncekey.core.ports import Answer, Request
from oncekey.stores.queries import load
from oncekey.stores.requests import Setting, Steps, carry_out, claim_alone, drive, insert_of
from oncekey.stores.within.awaiting import arunner_of
from oncekey.stores.within.blocking import runner_of


def ask(transaction: Any, request: Request, setting: Setting, dialect: str) -> Answer:
    run, queries = runner_of(transaction, dialect), load(dialect)
    steps = _steps_of(request, setting)
    answer: Answer = drive(steps, lambda name, values: run(queries[name], values))
    return answer


async def aask(transaction: Any, request: Request, setting: Setting, dialect: str) -> Answer:
    run, queries = arunner_of(transaction, dialect), load(dialect)
    steps = _steps_of(request, setting)
    try:
        name, values = next(steps)
        while True:
            name, values = steps.send(await run(queries[name], values))
    except StopIteration as stop:
        answer: Answer = stop.value
        return answer


def _steps_of(request: Request, setting: Setting) -> Steps:
    insert = insert_of(request)
    if insert is None:
        return carry_out(request, setting)
    return claim_alone(request, insert, setting)
