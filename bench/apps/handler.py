"""What every application does: parse JSON, count the run, answer 201 with a small JSON body."""

import json

ANSWER = b'{"id":"ord_1","ok":true}'
SLOW_SECONDS = 0.020


class Runs:
    """How often the handler ran: what proves that a replay was one."""

    total = 0


def create_order(body: bytes) -> bytes:
    json.loads(body)
    Runs.total += 1
    return ANSWER


def runs() -> bytes:
    return b"%d" % Runs.total
