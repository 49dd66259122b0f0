"""The guide to nginx: its files are served by the real program, and answer what it shows."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.guided import Guided
from tests.fixtures.pages import DOCS
from tests.fixtures.ports import unused_port
from tests.fixtures.served import Serve
from tests.fixtures.terminals import terminals

PAGE = DOCS / "how-to" / "nginx.md"


@pytest.fixture
def site(serve: Serve) -> Iterator[Guided]:
    # Under root, nginx keeps bodies as somebody else, who must get to the folder.
    with (
        tempfile.TemporaryDirectory(prefix="oncekey-nginx-") as name,
        terminals(Path(name)) as desk,
    ):
        Path(name).chmod(0o755)
        tls, service = unused_port(), unused_port()
        acts = {
            "uvicorn": lambda line: desk.start(line, service),
            "nginx": lambda line: desk.start(line, tls),
        }
        yield Guided(PAGE, serve, Path(name), ports={8443: tls, 9000: service}, acts=acts)


def test_the_guide_is_followed(site: Guided) -> None:
    site.guide.follow()
    asked = "curl --cacert cert.pem https://localhost:8443"
    key = '-H "Authorization: Bearer $KEY"'
    for path in ("/metrics", "/api/admin/keys", "/edge/decide", "/console/keys"):
        line = site.guide.moved(f"{asked}{path} -o out -w '%{{http_code}}' {key}")
        assert site.type(line) == "404", path
    forged = f"-H 'X-Tenant-Id: evil' {key} -H 'Idempotency-Key: tea-2' -d '{{}}'"
    assert '"x-tenant-id": "acme"' in site.type(site.guide.moved(f"{asked}/orders {forged}"))
