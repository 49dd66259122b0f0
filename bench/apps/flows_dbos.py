"""Workflows on DBOS, tuned: its asynchronous calls, few threads, JSON, and SQLite with a log (WAL).

More threads only pass the interpreter's lock around: 2 on SQLite and 4 on PostgreSQL are fastest.
"""

import asyncio
from typing import Any

import sqlalchemy
from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer, SetWorkflowID

from bench.apps.witness import WITNESS, add

TOPIC = "paid"
# How often a waiting workflow looks for its message on SQLite, which cannot notify. The shortest
# there is wakes soonest; the default costs the least, when nobody waits or a thousand do.
SOONEST_SECONDS = 0.001
DEFAULT_SECONDS = 1.0


@DBOS.step()
async def _add(number: int) -> int:
    return add(number)


@DBOS.workflow(max_recovery_attempts=None)
async def _one(number: int) -> int:
    return await _add(number)


@DBOS.workflow(max_recovery_attempts=None)
async def _three(number: int) -> int:
    return await _add(await _add(await _add(number)))


@DBOS.workflow(max_recovery_attempts=None)
async def _wait(key: str) -> Any:
    WITNESS.enter()
    value = await DBOS.recv_async(TOPIC, timeout_seconds=24 * 3600)
    WITNESS.resume(key, value)
    return value


class DbosFlows:
    """Messages are addressed to workflows, so the key that is waited for is the workflow's id."""

    def __init__(self, url: str, soonest: bool) -> None:
        self._config = _config(url, SOONEST_SECONDS if soonest else DEFAULT_SECONDS)

    async def open(self) -> None:
        DBOS(config=self._config)
        # Inside the running loop, so that what it recovers runs here too.
        DBOS.launch()

    async def close(self) -> None:
        await asyncio.to_thread(DBOS.destroy)

    async def run(self, steps: int, number: int) -> Any:
        return await (_one if steps == 1 else _three)(number)

    async def wait(self, key: str) -> None:
        with SetWorkflowID(key):
            await DBOS.start_workflow_async(_wait, key)

    async def all_wait(self, number: int) -> None:
        """It does not tell who waits; whoever came to the line before it does so, or soon will."""
        await WITNESS.entered(number)

    async def all_wait_again(self, number: int) -> None:
        """Each is recovered: run again from its first line up to its wait."""
        await WITNESS.entered(number)

    async def resolve(self, key: str, value: int) -> None:
        await DBOS.send_async(key, value, TOPIC)


def _config(url: str, poll_seconds: float) -> DBOSConfig:
    config = DBOSConfig(
        name="bench",
        system_database_url=url,
        application_version="1",
        executor_id="bench",
        serializer=DBOSPortableJSONSerializer(),
        max_executor_threads=2 if url.startswith("sqlite") else 4,
        notification_listener_polling_interval_sec=poll_seconds,
        log_level="ERROR",
    )
    if url.startswith("sqlite"):
        config["system_database_engine"] = _engine_with_log(url)
    return config


def _engine_with_log(url: str) -> sqlalchemy.Engine:
    """What DBOS sets on its own engine, and the log, which it does not use by itself."""
    engine = sqlalchemy.create_engine(url)
    settings = ("busy_timeout=30000", "foreign_keys=ON", "journal_mode=WAL", "synchronous=FULL")

    @sqlalchemy.event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:
        connection.isolation_level = "IMMEDIATE"
        for setting in settings:
            connection.execute(f"PRAGMA {setting}")

    return engine
