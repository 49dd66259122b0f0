"""The page on webhooks: its commands, its expressions and its provider do what it says."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from oncekey import App, Context, Ledger
from oncekey.config import load
from oncekey.core.model import Kind, Outcome
from oncekey.testing import memory_ledger
from oncekey.webhooks.acting import Answered, ForwardRequest
from tests.fixtures.console import Reader, commands_of
from tests.fixtures.pages import DOCS
from tests.fixtures.ports import unused_port
from tests.fixtures.post import post_on
from tests.fixtures.served import ROOT, Serve

PAGE = DOCS / "how-to" / "webhooks.md"
TEXT = PAGE.read_text()
FOLLOWS = re.findall(r"(?m)^\| `(\w+)` \| `((?:resolve|event|workflow|forward):.+?)` \|", TEXT)
BODIES: dict[str, Any] = {
    "stripe": {"id": "evt_1", "data": {"object": {"id": "ch_1"}}},
    "twilio": b"MessageSid=SM1&MessageStatus=delivered",
    "github": {"ref": "main"},
    "shopify": {"id": 7, "cancelled_at": None},
    "adyen": {
        "notificationItems": [
            {
                "NotificationRequestItem": {
                    "pspReference": "p1",
                    "eventCode": "CAPTURE",
                    "success": "true",
                    "amount": {"value": 499, "currency": "EUR"},
                }
            }
        ]
    },
}
STATUSES = {"resolve": "parked", "event": "published", "workflow": "started"}


@pytest.fixture
def reader(serve: Serve, tmp_path: Path) -> Reader:
    folder = tmp_path / "webhooks"
    shutil.copytree(ROOT / "examples" / "webhooks", folder)
    port = str(unused_port())
    settings = {
        "ONCEKEY_SERVER__PORT": port,
        "ONCEKEY_STORE__URL": f"sqlite:///{tmp_path}/oncekey.db",
        "ONCEKEY_WEBHOOKS__KEY_FILE": f"{tmp_path}/webhooks.key",
    }
    served = serve("--config", str(folder / "oncekey.toml"), "--port", port, **settings)
    return Reader(folder, served.url, **settings)


def test_stripe_from_end_to_end(reader: Reader) -> None:
    lines = [each.line for each in commands_of(PAGE)]
    begin = lines.index("cd examples/webhooks") + 2
    _, _, _, first, again, _, early, _, _ = reader.type(*lines[begin : begin + 9])

    assert '"status":"resolved"' in first.output
    assert "idempotent-replayed: true" in again.output
    assert '"status":"parked"' in early.output
    for key in ("order:42", "order:43"):
        (shown,) = reader.type(f"oncekey workflows start order --input {key[-2:]} --key {key}")
        number = re.findall(r"wf_[0-9a-f]+", shown.output)[0]
        assert " paid" in reader.type(f"oncekey workflows show {number} --wait 30s")[0].output


def test_a_webhook_is_made_as_shown(reader: Reader) -> None:
    create = commands_of(PAGE)[0]
    # The first one also makes the key that seals secrets, and says so.
    _, made = reader.type(create.line, create.line)

    def outline(text: str) -> str:
        return re.sub(r":\d+(?=/)|(?<=wh_)\w+|(?<=whsec_)\w+", "", text)

    assert outline(made.output.strip()) == outline(create.shown)


async def behind(_: ForwardRequest) -> Answered:
    return Answered(Outcome(Kind.RESPONSE, 204, (), b""), final=True)


def app_with_build() -> App:
    app = App()

    @app.workflow
    async def build(ctx: Context, push: dict[str, Any]) -> str:
        return str(push["ref"])

    return app


@pytest.fixture
def ledger() -> Ledger:
    return memory_ledger()


@pytest.mark.anyio
@pytest.mark.parametrize("provider, then", FOLLOWS)
async def test_what_follows_is_as_in_the_table(ledger: Ledger, provider: str, then: str) -> None:
    async with post_on(ledger, app_with_build(), forward=behind) as post:
        webhook = await post.webhook(provider, then)
        reply = await webhook.deliver(BODIES[provider], x_github_event="push")

    assert reply.status == 200
    kind = then.partition(":")[0]
    if kind != "forward":
        assert json.loads(reply.body)["status"] == STATUSES[kind]


def test_the_table_has_all_that_can_follow() -> None:
    assert {then.partition(":")[0] for _, then in FOLLOWS} == {*STATUSES, "forward"}


@pytest.mark.anyio
async def test_batches_are_taken_apart_as_shown(ledger: Ledger) -> None:
    (shown,) = re.findall(r"(?ms)^```json\n(.*?)^```", TEXT)
    async with post_on(ledger, App()) as post:
        webhook = await post.webhook("gocardless", 'event:"bank"')
        await webhook.deliver({"events": [{"id": "EV1"}, {"id": "EV2"}]})
        reply = await webhook.deliver({"events": [{"id": "EV2"}, {"id": "EV3"}]})

    assert json.loads(reply.body) == json.loads(shown)


@pytest.mark.anyio
async def test_the_provider_that_is_declared(ledger: Ledger, tmp_path: Path) -> None:
    (declared,) = re.findall(r"(?ms)^```toml\n(.*?)^```", TEXT)
    (tmp_path / "oncekey.toml").write_text(declared)
    providers = load(tmp_path / "oncekey.toml", {}, {}).providers
    create = next(each.line for each in commands_of(PAGE) if "--provider acme" in each.line)
    (then,) = re.findall(r"--then '(.+)'", create)

    async with post_on(ledger, App(), declared=providers) as post:
        webhook = await post.webhook("acme", then)
        first, again = [
            await webhook.deliver({"kind": "paid"}, x_acme_delivery="d-1") for _ in range(2)
        ]
        (event,) = await post.published()
    assert (first.status, again.status) == (200, 200)
    assert event.topic == "acme:paid"
