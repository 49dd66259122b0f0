"""What `oncekey serve` offers to try: nothing that cannot work there."""

import pytest

from oncekey.cli.banner import Banner
from oncekey.config import AppSettings, Settings, StoreSettings


@pytest.mark.parametrize("url, offered", [("sqlite:///x.db", True), ("memory://", False)])
def test_no_other_process_is_sent_to_a_ledger_inside_of_this_one(url: str, offered: bool) -> None:
    examples = ["{oncekey} webhooks send {webhook}", "curl {url}/x"]
    settings = Settings(store=StoreSettings(url), app=AppSettings(examples=tuple(examples)))
    told = Banner(settings, 8700).text()
    assert ("webhooks send WEBHOOK" in told) is offered
    assert "curl http://127.0.0.1:8700/x" in told
