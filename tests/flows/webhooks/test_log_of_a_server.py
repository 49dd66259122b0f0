"""The log of deliveries of a server: whole after it was stopped, and short after a flood."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import oncekey
from oncekey.core.deliveries import Deliveries, LoggedDelivery
from oncekey.webhooks.delivery import Delivery
from oncekey.webhooks.keys import keys_in_file, make_key_file
from oncekey.webhooks.providers.stripe import Stripe
from oncekey.webhooks.secrets import LocalSecrets
from oncekey.webhooks.sources import Source, Sources
from oncekey.webhooks.then import Publish
from tests.fixtures.served import Served

SECRET = "whsec_of_this_test_only"


class Site:
    """A server with one webhook of Stripe."""

    def __init__(self, folder: Path) -> None:
        (folder / "oncekey.toml").write_text("[server]\napi = true\n")
        key_file = folder / "oncekey-webhooks.key"
        make_key_file(key_file)
        self.ledger = oncekey.open(f"sqlite:///{folder}/oncekey.db")
        sources = Sources(self.ledger, LocalSecrets(lambda: keys_in_file(key_file)))
        self.source: Source = asyncio.run(
            sources.create("acme", "shop", "stripe", Publish("provider"), secret=SECRET)
        )
        self.served = Served([], folder, {})
        self.url = f"{self.served.url}/api/v1/webhooks/stripe/{self.source.id}"

    def deliver(self, client: httpx.Client, number: int, secret: str = SECRET) -> int:
        body = json.dumps({"id": f"evt_{number}"}).encode()
        signed = Stripe().sign(Delivery(self.url, (), body), secret, time.time())
        answer = client.post(self.url, content=signed.body, headers=list(signed.headers))
        return answer.status_code

    def log(self) -> list[LoggedDelivery]:
        return asyncio.run(Deliveries(self.ledger).list(self.source.id, limit=1000))

    def close(self) -> None:
        self.served.kill()
        self.ledger.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    opened = Site(tmp_path)
    yield opened
    opened.close()


def test_a_server_that_is_stopped_has_written_all_of_it(site: Site) -> None:
    with httpx.Client() as client:
        assert [site.deliver(client, number % 20) for number in range(40)] == [200] * 40
        assert [site.deliver(client, 1, "whsec_wrong") for _ in range(100)] == [401] * 100
    code, _ = site.served.stop()
    assert code == 0

    log = site.log()
    times = Counter[str]()
    for line in log:
        times[line.verdict] += line.times
    assert times == {"accepted": 20, "replayed": 20, "refused": 100}
    # A minute may end in between, and then more of them have a line of their own.
    assert 61 <= sum(line.verdict == "refused" for line in log) < 100
    assert {line.identifier for line in log if line.verdict == "refused"} == {""}
