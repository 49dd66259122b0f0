"""Everything there is of durable work: its objects, and the rooms that ask them."""

from __future__ import annotations

from typing import Any

from oncekey.stores.restate.asking.controls import Controls
from oncekey.stores.restate.asking.executions import Executions
from oncekey.stores.restate.asking.promises import Promises
from oncekey.stores.restate.asking.waits import Waits
from oncekey.stores.restate.control import control_object
from oncekey.stores.restate.dispatch import work_service
from oncekey.stores.restate.execution import execution_object
from oncekey.stores.restate.life import Life
from oncekey.stores.restate.link import Link
from oncekey.stores.restate.promise import promise_object
from oncekey.stores.restate.token import token_object


def work_objects() -> list[Any]:
    return [execution_object(), promise_object(), token_object(), control_object(), work_service()]


def work_rooms(link: Link, life: Life) -> list[Any]:
    executions, promises = Executions(link, life), Promises(link)
    return [executions, promises, Waits(link, executions, promises), Controls(link, executions)]
