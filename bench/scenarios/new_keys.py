"""New keys: every request is one claim, one run and one stored outcome."""

from secrets import token_hex

from bench.load import CONNECTIONS, FAILURES, Sample, wrk
from bench.results import Findings, Plan
from bench.scenarios.throughput import measure_rounds
from bench.serving import Server
from bench.stage import Stage

NAME = "new-keys"
WARM_UP_SECONDS = 1


def run(stage: Stage, plan: Plan) -> Findings:
    for server in stage.servers.values():
        _warm_up(server)

    def sample_of(server: Server) -> tuple[Sample, int]:
        before = server.runs()
        sample = wrk(server.port, "new_keys.lua", plan.seconds, token_hex(6))
        extra = server.runs() - before - (sample.requests - sample.refused)
        # Up to one request per connection is under way when wrk stops counting.
        return sample, 0 if 0 <= extra <= CONNECTIONS else extra

    return measure_rounds(NAME, stage, plan, sample_of)


def _warm_up(server: Server) -> None:
    if NAME in server.refused or NAME not in server.contender.scenarios:
        return
    try:
        wrk(server.port, "new_keys.lua", WARM_UP_SECONDS, token_hex(6))
    except FAILURES as error:
        server.refused[NAME] = str(error)
