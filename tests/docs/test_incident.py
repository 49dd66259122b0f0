"""The page on incidents: a bad release, its answers, and what becomes of them."""

from pathlib import Path

from tests.fixtures.guided import Guided
from tests.fixtures.pages import DOCS
from tests.fixtures.ports import unused_port
from tests.fixtures.served import Serve
from tests.fixtures.terminals import terminals

PAGE = DOCS / "how-to" / "incident.md"


def test_the_page_is_followed(serve: Serve, tmp_path: Path) -> None:
    with terminals(tmp_path) as desk:
        port = unused_port()
        acts = {"uvicorn": lambda line: desk.start(line, port)}
        Guided(PAGE, serve, tmp_path, ports={9000: port}, acts=acts).guide.follow()
