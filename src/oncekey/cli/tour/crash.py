"""The second scene: the server is killed in the middle of a workflow, and started again."""

from __future__ import annotations

from oncekey.cli.tour import retries
from oncekey.cli.tour.stage import Stage

_ORDER, _AMOUNT = 1003, 2500


def play(stage: Stage) -> None:
    stage.teller.scene(
        2,
        "The server dies in the middle of a workflow",
        "The workflow sell has two steps: charge-card, then send-parcel.",
    )
    execution = _begin_and_kill(stage)
    stage.teller.say("It is started again. Nobody tells it what it was doing:")
    stage.start_server()
    _see_it_end(stage, execution)
    _ask_once_more(stage)


def _begin_and_kill(stage: Stage) -> str:
    teller, bank = stage.teller, stage.bank
    hold = bank.hold("/parcels")
    execution = stage.client.start("sell", _ORDER, _AMOUNT)
    with teller.waiting("until the second step begins"):
        stage.patience.wait_for(hold.arrived, "the bank is not asked")
    teller.check("step 1 is done: the card is charged", bank.count("/charges", _ORDER), 1)
    teller.check("step 2 has begun: no parcel yet", bank.count("/parcels", _ORDER), 0)
    teller.say("Now, in the middle of the second step:")
    teller.command("kill", "-9", str(stage.server.pid))
    stage.server.kill()
    stage.client.counts["killed"] += 1
    hold.let_go(lost=True)
    teller.check("nobody answers any more", stage.client.is_answered(), False)
    return execution


def _see_it_end(stage: Stage, execution: str) -> None:
    teller, bank = stage.teller, stage.bank
    found = stage.client.await_end(execution)
    teller.check("the workflow went on and ended", found["status"], "succeeded")
    teller.check("step 1 was not done again: one charge", bank.count("/charges", _ORDER), 1)
    teller.check("step 2 was: one parcel", bank.count("/parcels", _ORDER), 1)


def _ask_once_more(stage: Stage) -> None:
    teller = stage.teller
    teller.say("And the client of the first scene, whose answer is from before the crash:")
    again = stage.client.post("/charges", retries.BODY, key=retries.KEY)
    teller.check("it is still replayed", again.headers.get("Idempotent-Replayed"), "true")
    counted = stage.bank.count("/charges", retries.ORDER)
    teller.check(f"the bank still has one charge for order {retries.ORDER}", counted, 1)
