"""Points around a commit at which a test may end the process: nothing is there unless asked for."""

from __future__ import annotations

from typing import Any

from oncekey.core.ports import Faults, Request
from oncekey.stores.writer import Session


class WatchedSession:
    """Names each group, and each kind of request in it: `Start-taken`, then `Start-committed`."""

    def __init__(self, session: Session, fault: Faults) -> None:
        self._session = session
        self._fault = fault
        self.beat = session.beat
        self.close = session.close

    def commit(self, requests: list[Request]) -> list[Any]:
        kinds = ["group", *{type(request).__name__: None for request in requests}]
        for kind in kinds:
            self._fault(f"{kind}-taken")
        answers = self._session.commit(requests)
        for kind in kinds:
            self._fault(f"{kind}-committed")
        return answers
