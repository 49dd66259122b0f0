"""The last scene: what happened, counted, and where to go on."""

from __future__ import annotations

from oncekey.cli.tour.stage import Stage


def play(stage: Stage) -> None:
    teller, counts, bank = stage.teller, stage.client.counts, stage.bank
    charges, parcels = bank.count("/charges"), bank.count("/parcels")
    teller.scene(4, "What happened")
    teller.table(
        [
            (str(counts["sent"]), "requests", "sent by clients and by Stripe"),
            (str(counts["replayed"]), "replays", "answered from the ledger, nothing done"),
            (str(counts["refused"]), "refused", "another amount, too early, forged"),
            (str(counts["killed"]), "kill -9", "in the middle of a workflow"),
            (str(charges), "charges", "for three orders, one each"),
            (str(parcels), "parcel", "for the workflow that was interrupted"),
        ]
    )
    teller.check("three orders were charged, each once", charges, 3)
    teller.pause(1)
    teller.say("Where to go on:")
    teller.lines(
        [
            ("oncekey serve --app shop:app", "your own app, with its requests made safe to retry"),
            (
                "http://127.0.0.1:8700/console",
                "while it runs: keys, workflows and webhooks to look at",
            ),
            ("https://oncekey.dev/quickstart/", "from nothing to a route that is safe to retry"),
        ]
    )
