"""Two hundred duplicates at once: one execution."""

from collections import Counter

from tests.fixtures.http.asking import rush
from tests.fixtures.http.site import Case

CROWD = 200


def test_one_of_two_hundred_duplicates_runs(case: Case) -> None:
    headers = {"Idempotency-Key": case.key, "X-Case": case.name}
    answers = rush(case.site.port, "/attach/order", headers, CROWD)

    assert case.runs == 1
    assert Counter(each.status_code for each in answers) == {201: CROWD}
    assert sum("idempotent-replayed" not in each.headers for each in answers) == 1
    assert {each.content for each in answers} == {answers[0].content}


def test_one_of_two_hundred_duplicates_runs_and_the_others_are_told_so(case: Case) -> None:
    headers = {"Idempotency-Key": case.key, "X-Case": case.name}
    answers = rush(case.site.port, "/plain/order", headers, CROWD)

    assert case.runs == 1
    assert Counter(each.status_code for each in answers).keys() <= {201, 409}
    succeeded = [each for each in answers if each.is_success]
    assert sum("idempotent-replayed" not in each.headers for each in succeeded) == 1
