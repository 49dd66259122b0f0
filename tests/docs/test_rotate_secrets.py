"""The page on rotating secrets: followed beside the edge, and true of what is only told."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from oncekey.config import Settings
from oncekey.config.auth_settings import JwtSettings
from oncekey.config.changes import change_of
from tests.fixtures.guided import Guided
from tests.fixtures.pages import DOCS
from tests.fixtures.ports import unused_port
from tests.fixtures.served import ROOT, Serve
from tests.fixtures.terminals import terminals

PAGE = DOCS / "how-to" / "rotate-secrets.md"


def test_the_page_is_followed(serve: Serve, tmp_path: Path) -> None:
    with terminals(ROOT) as desk:
        port = unused_port()
        desk.start(f"uvicorn --app-dir examples/edge orders:app --port {port}", port)
        site = Guided(PAGE, serve, tmp_path, ports={9000: port})
        site.guide.follow()
        # One without a subject is its own, and may be followed by one of the same.
        (own,) = re.findall(r"ak_\w+", site.type("oncekey apikeys create --tenant acme"))
        site.type(f"oncekey apikeys create --tenant acme --subject service:{own}")
        assert site.type("oncekey apikeys list").count(f"service:{own}") == 2


def test_what_keys_of_tokens_a_reload_takes_over() -> None:
    new = Settings()
    new = replace(new, auth=replace(new.auth, jwt=JwtSettings(jwks_file="keys.json")))
    change = change_of(Settings(), new)
    assert change.settings.auth == new.auth
    assert change.waiting == ()


def test_every_setting_that_holds_a_secret_is_told_of() -> None:
    reference = (DOCS / "reference" / "configuration.md").read_text()
    names = set(
        re.findall(r"(?m)^\| `[\w.<>]*?([a-z_]*(?:secret|token|key)[a-z_]*)` \|", reference)
    )
    told = PAGE.read_text()
    # Where the key of the seal and the vault's own are, the page says without their settings.
    elsewhere = {"key_env", "token_env", "secret_id_env", "secrets", "root_key_env"}
    assert {name for name in names if f"{name}`" not in told and name not in told} <= elsewhere


@pytest.mark.parametrize("anchor", re.findall(r"(?m)^\| \[[^\]]+\]\(#([\w-]+)\)", PAGE.read_text()))
def test_every_secret_of_the_table_has_its_part(anchor: str) -> None:
    parts = re.findall(r"(?m)^## (.+)$", PAGE.read_text())
    assert anchor in {part.lower().replace(" ", "-") for part in parts}
