"""The example of a webhook, as its README tells it, and with its steps in another order."""

import shutil
from pathlib import Path

import pytest

from oncekey.config import load
from tests.fixtures.console import Reader, commands_of
from tests.fixtures.ports import unused_port
from tests.fixtures.served import ROOT, Serve

EXAMPLE = ROOT / "examples" / "webhooks"
CREATE, HOOK, START, ORDER, SEND, AGAIN, SHOW, LOG = [
    each.line for each in commands_of(EXAMPLE / "README.md")[2:]
]


@pytest.fixture
def reader(serve: Serve, tmp_path: Path) -> Reader:
    """In a folder like the example's, where `oncekey serve` runs."""
    folder = tmp_path / "webhooks"
    shutil.copytree(EXAMPLE, folder)
    port = str(unused_port())
    settings = {
        "ONCEKEY_SERVER__PORT": port,
        "ONCEKEY_STORE__URL": f"sqlite:///{tmp_path}/oncekey.db",
        "ONCEKEY_WEBHOOKS__KEY_FILE": f"{tmp_path}/webhooks.key",
    }
    served = serve("--config", str(folder / "oncekey.toml"), "--port", port, **settings)
    return Reader(folder, served.url, **settings)


def test_the_readme(reader: Reader) -> None:
    reader.type(CREATE, HOOK, START, ORDER)
    sent, again, shown, log = reader.type(SEND, AGAIN, SHOW, LOG)

    assert (sent.code, again.code) == (0, 0)
    assert '"status":"resolved"' in sent.output
    assert "idempotent-replayed: true" in again.output
    assert "order 42: 4.99 paid" in shown.output
    assert [line.split()[2] for line in log.output.splitlines()[-2:]] == ["replayed", "accepted"]


def test_the_webhook_may_come_first(reader: Reader) -> None:
    reader.type(CREATE, HOOK)
    early, _, _, shown, late = reader.type(SEND, START, ORDER, SHOW, AGAIN)

    assert '"status":"parked"' in early.output
    assert "order 42: 4.99 paid" in shown.output
    assert "idempotent-replayed: true" in late.output


def test_a_payment_that_failed_is_told_too(reader: Reader) -> None:
    reader.type(CREATE, HOOK, START, ORDER)
    failed = SEND.replace(
        "--file paid.json",
        """--data '{"id": "evt_9", "type": "payment_intent.payment_failed",
                    "data": {"object": {"id": "pi_42"}}}'""",
    )
    _, shown = reader.type(failed, SHOW)

    assert "order 42 is not paid" in shown.output


def test_what_is_left_to_choose_is_right_too(tmp_path: Path) -> None:
    chosen = (EXAMPLE / "oncekey.toml").read_text().replace("\n#public", "\npublic")
    (tmp_path / "oncekey.toml").write_text(chosen.replace("\n#key", "\nkey"))

    settings = load(tmp_path / "oncekey.toml", {}, {})
    assert settings.webhooks.public_url == "https://hooks.example.com"
    assert settings.webhooks.max_body == 1 << 20
