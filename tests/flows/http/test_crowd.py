"""Two hundred duplicates at once: one execution."""

import threading
from collections import Counter

import httpx

from tests.fixtures.http.site import TIMEOUT, Case

CROWD = 200


def rush(case: Case, path: str) -> list[httpx.Response]:
    """Everybody connects, and sends when everybody is ready."""
    barrier = threading.Barrier(CROWD)

    def one() -> httpx.Response:
        barrier.wait(TIMEOUT)
        return case.send(path)

    return [each.result() for each in [case.pool.submit(one) for _ in range(CROWD)]]


def test_one_of_two_hundred_duplicates_runs(case: Case) -> None:
    answers = rush(case, "/attach/order")

    assert case.runs == 1
    assert Counter(each.status_code for each in answers) == {201: CROWD}
    assert sum("idempotent-replayed" not in each.headers for each in answers) == 1
    assert {each.content for each in answers} == {answers[0].content}


def test_one_of_two_hundred_duplicates_runs_and_the_others_are_told_so(case: Case) -> None:
    answers = rush(case, "/plain/order")

    assert case.runs == 1
    statuses = Counter(each.status_code for each in answers)
    assert statuses.keys() <= {201, 409}
    assert (
        sum("idempotent-replayed" not in each.headers for each in answers if each.is_success) == 1
    )
