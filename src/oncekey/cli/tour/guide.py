"""The guide: takes the visitor through the scenes, on a stage that is gone afterwards."""

from __future__ import annotations

import httpx

from oncekey.cli.failure import Failure
from oncekey.cli.tour import crash, payment, retries, summary
from oncekey.cli.tour.asking import WORKFLOWS
from oncekey.cli.tour.bank import Bank
from oncekey.cli.tour.patience import Patience
from oncekey.cli.tour.stage import set_up
from oncekey.cli.tour.teller import Teller

_SCENES = (retries, crash, payment, summary)


def guide(teller: Teller, *, bank: Bank, keep: bool = False) -> None:
    """Raises `Failure` where something is not as it is told, and `Stopped` when told to stop."""
    with Patience() as patience:
        teller.rest = patience.rest
        try:
            _play(teller, patience, bank, keep=keep)
        except httpx.TransportError as error:
            # A signal ends the server first.
            patience.heed()
            raise Failure(f"the server went away in the middle: {error}") from error


def _play(teller: Teller, patience: Patience, bank: Bank, *, keep: bool) -> None:
    with set_up(teller, patience, bank, keep=keep) as stage:
        teller.title(
            "OnceKey: one key, one effect",
            "A shop, a bank behind it, and what goes wrong in between. All of it happens on this "
            "machine now, and each claim is checked.",
        )
        stage.start_server()
        teller.say("It serves the shop, and the client has an API key for it. From here on:")
        teller.lines(
            [
                (f"SHOP={stage.server.url}", ""),
                (f"FLOWS=$SHOP{WORKFLOWS}", ""),
                (f"HOOK=$SHOP{stage.hook.path}", ""),
            ]
        )
        for scene in _SCENES:
            scene.play(stage)
        if keep:
            teller.say("The folder is kept:")
            config = str(stage.folder / "oncekey.toml")
            teller.command("oncekey", "keys", "list", "--config", config)
