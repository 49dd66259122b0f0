"""How an execution begins: its number, its key, and where it will run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from oncekey.core.errors import NameUnknown, PayloadTooLarge
from oncekey.core.execution import Execution, Sort, Status
from oncekey.core.work import Start
from oncekey.durable.definition import Definition
from oncekey.durable.embedded.asking import STARTS
from oncekey.durable.engine import MAX_PAYLOAD
from oncekey.durable.nesting import check_depth
from oncekey.durable.signature import pack_arguments, unpack_arguments
from oncekey.durable.values import canonical, fingerprint_of

if TYPE_CHECKING:
    from oncekey.durable.embedded.asking import Asking
    from oncekey.durable.embedded.runs import Runs


class Starting:
    def __init__(self, asking: Asking, definitions: Mapping[tuple[Sort, str], Definition]) -> None:
        self._asking = asking
        self._definitions = definitions
        self._by_function = {each.function: each for each in definitions.values()}
        self._keep = asking.ledger.retention_classes.milliseconds

    def definition_of(self, target: Callable[..., Any] | str) -> Definition:
        if callable(target):
            found = self._by_function.get(target)
        else:
            found = self._definitions.get((Sort.WORKFLOW, target)) or self._definitions.get(
                (Sort.TASK, target)
            )
        if found is None:
            name = target if isinstance(target, str) else getattr(target, "__name__", repr(target))
            raise NameUnknown(f"{name} is neither a workflow nor a task of this app")
        return found

    def start(
        self,
        tenant: str,
        place: tuple[Sort, str],
        body: bytes,
        key: str | None,
        runs: Runs,
        *,
        frees_key: bool = False,
    ) -> Start:
        """A start that has not been made yet; RUNNING when there is room for it here, which is kept
        until it is `spawned` or `release`d."""
        definition = self._definitions.get(place)
        number, now = self._asking.draw(), self._asking.clock.now()
        insert = None
        if key is not None:
            fingerprint = fingerprint_of(str(int(place[0])), place[1], canonical(body))
            insert = self._asking.insert(tenant, STARTS, key, number, fingerprint=fingerprint)
        here = definition is not None and runs.reserve(definition)
        timeout = None if definition is None else definition.timeout
        execution = Execution(
            number,
            tenant,
            place[0],
            place[1],
            body,
            Status.RUNNING if here else Status.READY,
            0,
            1,
            now,
            0,
            self._kept(definition),
            key,
            frees_key,
            None if timeout is None else now + round(timeout * 1000),
        )
        return Start(execution, insert)

    def check(self, place: tuple[Sort, str], body: bytes) -> None:
        """Raises for an input that is too large, or that the function does not take."""
        if len(body) > MAX_PAYLOAD:
            raise PayloadTooLarge(
                f"the input of {place[1]} has {len(body)} bytes; {MAX_PAYLOAD} are allowed"
            )
        check_depth(body, f"the input of {place[1]}")
        definition = self._definitions.get(place)
        if definition is not None:
            unpack_arguments(definition.signature, body)

    def renumbered(self, start: Start) -> Start:
        """The same under another number, when the first was another process's as well."""
        number = self._asking.draw()
        insert = None if start.insert is None else start.insert._replace(id=number)
        return Start(start.execution._replace(id=number), insert)

    def packed(
        self, target: Callable[..., Any] | str, args: tuple[Any, ...]
    ) -> tuple[Definition, bytes]:
        definition = self.definition_of(target)
        return definition, pack_arguments(definition.signature, args)

    def _kept(self, definition: Definition | None) -> int:
        keep = None if definition is None else definition.keep
        return self._keep("interactive") if keep is None else round(keep * 1000)
