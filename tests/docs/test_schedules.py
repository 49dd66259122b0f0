"""What the page on schedules says about files and clocks is so."""

import re
from datetime import UTC, datetime
from pathlib import Path

from oncekey.compose.schedules import schedules_of
from oncekey.config import load
from oncekey.schedules import Cron
from oncekey.schedules.missed import GRACE
from tests.fixtures.ticks import ticks_between

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "schedules.md").read_text()
SPRING, AUTUMN = datetime(2026, 3, 28, 23, tzinfo=UTC), datetime(2026, 10, 24, 22, tzinfo=UTC)


def ticks(line: str, midnight: datetime, hours: int) -> list[str]:
    begin = round(midnight.timestamp() * 1000)
    found = ticks_between(Cron(line, "Europe/Berlin"), begin - 1, begin + hours * 3_600_000 - 1, 99)
    return [f"{datetime.fromtimestamp(each / 1000, UTC):%H:%M}" for each in found]


def test_the_file_of_the_page_is_right(tmp_path: Path) -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "oncekey.toml").write_text(text)
    schedules = schedules_of(load(tmp_path / "oncekey.toml"))
    assert [each.id for each in schedules] == ["close-the-day", "prices"]


def test_the_table_of_clocks_that_change_is_right() -> None:
    """A day of 23 hours, then one of 25, each from local midnight on."""
    for line in ("30 2 * * *", "*/30 2 * * *", "*/30 * * * *"):
        assert f"| `{line}` |" in PAGE
    assert ticks("30 2 * * *", SPRING, 23) == ["01:00"]
    assert ticks("30 2 * * *", AUTUMN, 25) == ["00:30"]
    assert ticks("*/30 2 * * *", SPRING, 23) == []
    assert ticks("*/30 2 * * *", AUTUMN, 25) == ["00:00", "00:30", "01:00", "01:30"]
    assert len(ticks("*/30 * * * *", SPRING, 23)) == 46
    assert len(ticks("*/30 * * * *", AUTUMN, 25)) == 50


def test_the_grace_is_the_minute_of_the_page() -> None:
    assert "none that is more than a minute late" in PAGE
    assert GRACE == 60_000
