"""What this process looks after now and then: Restate keeps the time of everything else."""

from __future__ import annotations

from oncekey.durable.embedded.timers import Timers

_EVERY = 5.0


class RestateTimers(Timers):
    def expect(self, due_at: int) -> None:
        """Whatever is due then, its object knows."""

    async def run_once(self) -> None:
        await self._runs.catch_up()
        await self._runs.events.match_left_over()

    def _pause(self) -> float:
        return _EVERY
