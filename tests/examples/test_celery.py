"""The example of Celery: a real worker on a real Redis, as its README tells it and worse."""

import pytest

from tests.fixtures.followed import Alone, Follow, Followed

STAND_STILL = "touch still.txt; rm -f stands.txt"
UNTIL_IT_STANDS = "until [ -s stands.txt ]; do sleep 0.1; done"
KILL = "kill -9 $(cat stands.txt)"
GO_ON = "rm still.txt"


def test_celery(example: Follow) -> None:
    ran = example("celery").follow()
    sent, refused, mails, _, _, _, saved, orders = ran[3:]

    assert sent.output == "mail for order 42 is sent\n" * 2
    assert refused.output == "failed for good: there is no order 0\n" * 2
    assert mails.output == "42\n"
    assert saved.output == "order 7 is saved\n" * 2
    assert orders.output == "order 7\n"


@pytest.fixture
def shop(example: Follow) -> Followed:
    """Where a worker runs."""
    followed = example("celery")
    followed.type(*followed.lines[:3])
    return followed


def worker_of(shop: Followed) -> Alone:
    return shop.alone[-1]


def test_a_message_that_is_delivered_again_while_its_task_runs(shop: Followed) -> None:
    call = "celery -A tasks call tasks.send_mail --args '[43]'"
    shop.type(STAND_STILL, call, UNTIL_IT_STANDS)
    # There was one message: what finds its task in progress is the same one, for a second time.
    worker_of(shop).hear(r"Retry in 1s: InProgress")
    *_, results, mails = shop.type(GO_ON, "python publish.py send_mail 43", "cat mails.txt")

    assert results.output == "mail for order 43 is sent\n" * 2
    assert mails.output == "43\n"


def test_a_child_that_is_killed_in_the_middle(shop: Followed) -> None:
    """The mail had left: that it leaves again is what at-least-once means."""
    shop.type(STAND_STILL, "python publish.py send_mail 44 > sent.txt &", UNTIL_IT_STANDS)
    *_, results, mails = shop.type(KILL, GO_ON, "wait; cat sent.txt", "cat mails.txt")

    worker_of(shop).hear("WorkerLostError|signal 9")
    assert results.output == "mail for order 44 is sent\n" * 2
    assert mails.output == "44\n" * 2


def test_what_is_in_the_transaction_is_there_once_whichever_child_is_killed(shop: Followed) -> None:
    shop.type(STAND_STILL, "python publish.py save_order 8 > saved.txt &", UNTIL_IT_STANDS)
    *_, results, orders = shop.type(KILL, GO_ON, "wait; cat saved.txt", "python publish.py")

    assert results.output == "order 8 is saved\n" * 2
    assert orders.output == "order 8\n"
