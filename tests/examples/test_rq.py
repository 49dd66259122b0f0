"""The example of RQ: real workers on a real Redis, as its README tells it and worse."""

import os
import signal

from redis import Redis
from rq.registry import StartedJobRegistry

from tests.fixtures.followed import Follow

SENT = "mail for order {} is sent\n"
LONG_AFTER = 10**10


def test_rq(example: Follow) -> None:
    _, _, _, _, sent, refused, _, _, retried, mails = example("rq").follow()

    assert sent.output == SENT.format(42) * 2
    assert refused.output.count("TerminalError: there is no order 0") == 2
    assert retried.output == SENT.format(43) * 2
    assert mails.output.split() == ["42", "43"]


def test_a_machine_that_is_gone_in_the_middle(example: Follow) -> None:
    followed = example("rq")
    enqueue, until_it_stands = followed.lines[6:8]
    followed.type(*followed.lines[:3], enqueue, until_it_stands.partition("; kill")[0])
    worker = followed.alone[-1]
    os.kill(worker.pid, signal.SIGKILL)
    os.kill(int(followed.read("stands.txt")), signal.SIGKILL)

    followed.type("rm still.txt", followed.lines[2])
    # What every worker does when a job has been silent for some minutes: it is given to others.
    with Redis(port=int(followed.port(6379))) as redis:
        StartedJobRegistry("mails", connection=redis).cleanup(timestamp=LONG_AFTER)
    sent, mails = followed.type("wait; cat sent.txt", "cat mails.txt")

    assert sent.output == SENT.format(43) * 2
    assert mails.output == "43\n"
