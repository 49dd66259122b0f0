"""Points around a commit at which a test may end the process: nothing is there unless asked for."""

from __future__ import annotations

from typing import Any

from oncekey.core.ports import Faults, Request
from oncekey.stores.writer import Session


class WatchedSession:
    def __init__(self, session: Session, fault: Faults) -> None:
        self._session = session
        self._fault = fault
        self.beat = session.beat
        self.close = session.close

    def commit(self, requests: list[Request]) -> list[Any]:
        self._fault("group-taken")
        answers = self._session.commit(requests)
        self._fault("group-committed")
        return answers
