"""The first scene: a client that lost the answer asks again, differently, and too early."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from oncekey.cli.tour.stage import Stage

ORDER = 1001
BODY = {"order": ORDER, "amount": 4200}
KEY = f"order-{ORDER}"
_OTHER, _OTHER_KEY = {"order": 1002, "amount": 900}, "order-1002"


def play(stage: Stage) -> None:
    stage.teller.scene(
        1,
        "The answer is lost, and the client asks again",
        "The bank behind the shop knows nothing of keys: each request that reaches it is a charge.",
    )
    _ask_twice(stage)
    _ask_for_another_amount(stage)
    _ask_at_the_same_moment(stage)


def _ask_twice(stage: Stage) -> None:
    teller, client = stage.teller, stage.client
    first = client.post("/charges", BODY, key=KEY)
    teller.check("charged", first.status_code, 201)
    teller.say("Say that this answer never arrived. The client cannot know, so it sends it again:")
    again = client.post("/charges", BODY, key=KEY)
    teller.check("the same answer, byte for byte", again.content, first.content)
    teller.check("marked as a replay", again.headers.get("Idempotent-Replayed"), "true")
    _check_charges(stage, ORDER)


def _ask_for_another_amount(stage: Stage) -> None:
    stage.teller.say("The same key with another amount is a mistake, and not a charge:")
    other = stage.client.post("/charges", {**BODY, "amount": 9900}, key=KEY)
    stage.teller.check("refused", other.status_code, 422)
    _check_charges(stage, ORDER)


def _ask_at_the_same_moment(stage: Stage) -> None:
    teller, client = stage.teller, stage.client
    teller.say("Two with one key at the same moment; the bank takes its time with the first:")
    hold = stage.bank.hold("/charges")
    client.show("/charges", _OTHER, key=_OTHER_KEY)
    with ThreadPoolExecutor(1) as threads:
        try:
            first = threads.submit(client.send, "/charges", _OTHER, key=_OTHER_KEY)
            stage.patience.wait_for(hold.arrived, "the bank is not asked")
            second = client.post("/charges", _OTHER, key=_OTHER_KEY)
        finally:
            hold.let_go()
        teller.check("the second is told to come back", second.status_code, 409)
        client.show_answer(first.result())
    teller.check("the first is charged", first.result().status_code, 201)
    _check_charges(stage, _OTHER["order"])


def _check_charges(stage: Stage, order: int) -> None:
    counted = stage.bank.count("/charges", order)
    stage.teller.check(f"the bank has one charge for order {order}", counted, 1)
