"""The reference of the API has every endpoint there is, and none that is not."""

import re
from pathlib import Path

from oncekey.api.admin.table import ENDPOINTS as ADMIN
from oncekey.api.table import ENDPOINTS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "api.md"


def test_the_endpoints_are_those_of_the_reference() -> None:
    told = re.findall(
        r"^\| ([A-Z]+) \| `(.+)` \| `(\w+)` \| (.+) \|$", PAGE.read_text(), re.MULTILINE
    )

    assert told == [
        (each.method, each.path.replace(":path", ""), each.policy, each.summary)
        for each in (*ENDPOINTS, *ADMIN)
    ]
