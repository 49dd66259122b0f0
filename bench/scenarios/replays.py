"""Replays: the same finished keys again and again; the handler must not run once."""

import asyncio
from secrets import token_hex

from bench.load import FAILURES, Sample, store_keys, wrk
from bench.results import Findings, Plan
from bench.scenarios.throughput import measure_rounds
from bench.serving import Server
from bench.stage import Stage

NAME = "replays"
KEYS = 256


def run(stage: Stage, plan: Plan) -> Findings:
    prefix = token_hex(6)
    for server in stage.servers.values():
        _store(server, prefix)

    def sample_of(server: Server) -> tuple[Sample, int]:
        before = server.runs()
        sample = wrk(server.port, "replays.lua", plan.seconds, prefix, str(KEYS))
        return sample, server.runs() - before

    return measure_rounds(NAME, stage, plan, sample_of)


def _store(server: Server, prefix: str) -> None:
    if NAME in server.refused:
        return
    try:
        asyncio.run(store_keys(server.port, prefix, KEYS))
    except FAILURES as error:
        server.refused[NAME] = str(error)
