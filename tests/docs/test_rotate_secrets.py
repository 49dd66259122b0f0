"""The page on rotating secrets: followed beside the edge, and true of what is only told."""

import re
import signal
import time
from pathlib import Path

import httpx
import pytest
from joserfc.jwk import RSAKey

from tests.fixtures.guided import Guided
from tests.fixtures.pages import DOCS
from tests.fixtures.ports import unused_port
from tests.fixtures.served import ROOT, Serve
from tests.fixtures.terminals import terminals
from tests.fixtures.tokens import claims_of, jwks_of, rsa, signed

PAGE = DOCS / "how-to" / "rotate-secrets.md"
EDGE = """
[auth.jwt]
jwks_file = "keys.json"

[upstreams.orders]
url = "http://127.0.0.1:{port}"

[[routes]]
path = "/orders"
methods = ["GET"]
upstream = "orders"
"""


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


def test_a_key_that_was_added_to_the_file_is_good_after_a_reload(
    serve: Serve, tmp_path: Path
) -> None:
    old, new = rsa("old"), rsa("new")
    (tmp_path / "keys.json").write_bytes(jwks_of(old))
    # Where nobody is let in, the answer is 401; where somebody is, the service is asked, and away.
    (tmp_path / "oncekey.toml").write_text(EDGE.format(port=unused_port()))
    served = serve()

    def ask(key: RSAKey) -> int:
        token = signed(key, claims_of(exp=int(time.time()) + 300), {"alg": "RS256", "kid": key.kid})
        headers = {"authorization": f"Bearer {token}"}
        return httpx.get(f"{served.url}/orders", headers=headers).status_code

    assert (ask(old), ask(new)) == (502, 401)
    (tmp_path / "keys.json").write_bytes(jwks_of(new, old))
    served.signal(signal.SIGHUP)
    assert "again" in served.hear()
    assert (ask(old), ask(new)) == (502, 502)


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
