"""The guide to Twilio: followed from an empty folder."""

import re
from pathlib import Path

from tests.fixtures.guided import Guided
from tests.fixtures.pages import DOCS
from tests.fixtures.served import Serve

PAGE = DOCS / "how-to" / "twilio.md"


def test_the_guide_is_followed(serve: Serve, tmp_path: Path) -> None:
    Guided(PAGE, serve, tmp_path).guide.follow()


def test_without_the_public_url_deliveries_are_refused(serve: Serve, tmp_path: Path) -> None:
    told = 'public_url = "https://hooks.example.com"    # Twilio signs the URL that it calls'
    site = Guided(PAGE, serve, tmp_path, words={told: ""})
    site.open()
    made = site.type("oncekey webhooks create --provider twilio --then workflow:answer")
    (source,) = set(re.findall(r"wh_\w+", made))
    line = f"oncekey webhooks send {source} --to {site.url} --data 'MessageSid=SM9&Body=hello'"
    send = f"{line} --header I-Twilio-Idempotency-Token=it-1"
    assert "200 OK" in site.type(send)

    behind = site.guide.run(f"ONCEKEY_WEBHOOKS__PUBLIC_URL=https://hooks.example.com {send}")
    assert "401" in behind.output
