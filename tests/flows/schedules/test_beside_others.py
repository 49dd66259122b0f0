"""A plain app on the ledger of a server with schedules: admins may look after both, and it leaves
the schedules to that server."""

import shutil
from pathlib import Path

from tests.fixtures.console_site import SHOP, ConsoleSite
from tests.fixtures.served import Served


def test_a_plain_app_drops_no_schedule_of_a_server(
    console_site: ConsoleSite, tmp_path: Path
) -> None:
    before = console_site.tell("schedules")["schedules"]
    assert [each["id"] for each in before] == ["nightly"]
    shutil.copy(SHOP / "app.py", tmp_path)
    ledger = {"ONCEKEY_STORE__URL": f"sqlite:///{console_site.database}"}
    plain = Served(["--app", "app:app"], tmp_path, ledger)
    try:
        assert "/console" in plain.banner
        assert console_site.tell("schedules")["schedules"] == before
    finally:
        plain.kill()
