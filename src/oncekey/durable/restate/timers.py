"""What this process looks after now and then: Restate keeps the time of everything else."""

from __future__ import annotations

from oncekey.durable.embedded.timers import Timers

_EVERY = 5.0
# What publishers that died have left is looked for through Restate's SQL, which reads all there is.
_LEFT_OVER_EVERY = 15_000


class RestateTimers(Timers):
    _matched_at = 0

    def expect(self, due_at: int) -> None:
        """Whatever is due then, its object knows."""

    async def run_once(self) -> None:
        await self._runs.catch_up()
        now = self._clock.steady()
        if now - self._matched_at >= _LEFT_OVER_EVERY:
            self._matched_at = now
            await self._runs.events.match_left_over()

    def _pause(self) -> float:
        return _EVERY
