"""Who stands in front of the service, and one sample of each: what it hands on, and what reached
the service meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from secrets import token_hex

from bench.gateways import QUIET_SECONDS, Caller, Gateways, Running, ask
from bench.load import CONNECTIONS, FAILURES, ORDERS, Sample, wrk
from bench.machine import LOAD_CPU
from bench.services import ServiceFailed

KEYS = 256
NEW, OLD = "new", "old"
WARM_UP_SECONDS = 1
CREATED = 201
NOBODY = Caller("X-API-Key", "nobody")
"""What those are sent that ask nobody who calls, so that all read as much."""


@dataclass(frozen=True)
class Front:
    """`keys`: none, new ones, or old ones that were answered before."""

    running: Running
    caller: Caller = NOBODY
    keys: str = ""
    prefix: str = ""
    asks: tuple[Running, ...] = ()
    """Who else works for it, beside the service."""
    alone: bool = False
    """Whether it answers itself; the service must not be asked."""
    path: str = ORDERS
    status: int = CREATED
    load_cpu: int | None = LOAD_CPU
    """The core of the load generator; None: any."""

    def cpu_seconds(self) -> float:
        return sum(each.cpu_seconds() for each in (self.running, *self.asks))

    @property
    def arguments(self) -> list[str]:
        said = [self.caller.header, self.caller.value]
        if self.keys == NEW:
            return [*said, NEW, token_hex(6)]
        return [*said, OLD, self.prefix, str(KEYS)] if self.keys else said

    def load(self, seconds: int) -> Sample:
        port = self.running.port
        return wrk(port, "edge.lua", seconds, *self.arguments, path=self.path, cpu=self.load_cpu)

    def post(self, key: str) -> int:
        """The status that one request is answered with."""
        return ask(self.running.port, "POST", self.path, self.caller, key)[0]


def sample_of(gateways: Gateways, each: Front, seconds: int) -> tuple[Sample, int]:
    """With how often the service was asked beyond what its answers explain."""
    before = gateways.runs()
    sample = each.load(seconds)
    # Whoever is slow has more under way, which comes later.
    asked = gateways.runs(max(QUIET_SECONDS, 2 * sample.p99_ms / 1e3)) - before
    if each.keys == OLD or each.alone:
        return sample, asked
    extra = asked - (sample.requests - sample.refused)
    # Up to one request per connection is under way when wrk stops counting.
    return sample, 0 if 0 <= extra <= CONNECTIONS else extra


def unfit(gateways: Gateways, each: Front) -> str:
    """Why it is not measured: it does not do what its figure would claim."""
    before = gateways.runs()
    key = f"probe-{token_hex(4)}" if each.keys else ""
    try:
        answers = [each.post(key) for _ in range(2)]
        asked = gateways.runs() - before
        sample_of(gateways, each, WARM_UP_SECONDS)
    except (*FAILURES, ServiceFailed) as error:
        return str(error)
    if any(status != each.status for status in answers):
        return f"it answers {answers}"
    wanted = 0 if each.alone else 1 if key else 2
    return "" if asked == wanted else f"the service is asked {asked} times, not {wanted}"
