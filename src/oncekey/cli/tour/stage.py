"""What the tour is played on: a folder with the shop in it, a server, and the bank behind it."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from oncekey.cli.tour.asking import Client
from oncekey.cli.tour.bank import Bank
from oncekey.cli.tour.patience import Patience
from oncekey.cli.tour.server import Server
from oncekey.cli.tour.teller import Teller
from oncekey.compose.configured import ledger_of
from oncekey.compose.webhooks import providers_for, sources_of
from oncekey.config import Settings, load
from oncekey.core.callers import Callers
from oncekey.core.ledger import Ledger
from oncekey.core.scope import TENANT_LEVEL
from oncekey.webhooks.naming import path_of
from oncekey.webhooks.then import parse_then

_FILES = ("flows.py", "oncekey.toml")
_BANK = "http://127.0.0.1:8701"
_THEN = 'resolve:"stripe:" + body.data.object.id'


class Hook(NamedTuple):
    """A webhook of Stripe: where it delivers to, and what it signs with."""

    path: str
    secret: str


class Stage(NamedTuple):
    teller: Teller
    patience: Patience
    folder: Path
    bank: Bank
    server: Server
    client: Client
    hook: Hook

    def start_server(self) -> None:
        config = str(self.folder / "oncekey.toml")
        self.teller.command("oncekey", "serve", "--port", "0", "--config", config)
        with self.teller.waiting("the server starts"):
            self.server.start()
        self.client.url = self.server.url


@contextmanager
def set_up(teller: Teller, patience: Patience, bank: Bank, *, keep: bool) -> Iterator[Stage]:
    """The server is not started yet. In the end nothing is left, but the folder with `keep`."""
    with ExitStack() as ends:
        ends.callback(bank.close)
        folder = Path(tempfile.mkdtemp(prefix="oncekey-demo-"))
        if not keep:
            ends.callback(shutil.rmtree, folder, ignore_errors=True)
        server = Server(folder, patience)
        ends.callback(server.kill)
        patience.at_signal = server.strike
        settings = _furnish(folder, bank)
        secret, hook = asyncio.run(_make_access(settings))
        client = Client(teller, patience, secret)
        yield Stage(teller, patience, folder, bank, server, client, hook)


def _furnish(folder: Path, bank: Bank) -> Settings:
    shop = files("oncekey.cli.tour.shop")
    for name in _FILES:
        text = shop.joinpath(name).read_text(encoding="utf-8")
        (folder / name).write_text(text.replace(_BANK, bank.url), encoding="utf-8")
    # Without the environment, as the server is started.
    return load(folder / "oncekey.toml", {}, {})


async def _make_access(settings: Settings) -> tuple[str, Hook]:
    """An API key for the shop's client, and a webhook for Stripe."""
    ledger = ledger_of(settings, sweep_interval=0)
    try:
        _, secret = await Callers(ledger).create("default", label="oncekey demo")
        return secret, await _make_hook(settings, ledger)
    finally:
        ledger.close()


async def _make_hook(settings: Settings, ledger: Ledger) -> Hook:
    secret = providers_for(settings)["stripe"].new_secret()
    source = await sources_of(settings, ledger).create(
        "default", TENANT_LEVEL, "stripe", parse_then(_THEN), secret=secret, label="oncekey demo"
    )
    return Hook(path_of(source), secret)
