"""`[[schedules]]` of a file and of the environment, and the schedules they become."""

from collections.abc import Callable
from pathlib import Path

import pytest

from oncekey.compose.schedules import scheduler_of, schedules_of
from oncekey.config import ScheduleSettings, Settings, load
from oncekey.core.errors import ConfigurationError
from oncekey.schedules import CallUrl, Cron, Every, Schedule, StartWorkflow
from oncekey.testing import memory_ledger

Write = Callable[[str], Path]
SECRET = "a secret of schedules"
HEAD = "[[schedules]]\nid = 'nightly'\n"
CALL = f"{HEAD}every = '1m'\nurl = 'http://shop/'\n"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def file(text: str) -> Path:
        path = tmp_path / "oncekey.toml"
        path.write_text(text)
        return path

    return file


def mistakes(file: Path, environ: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(ConfigurationError) as refused:
        load(file, environ)
    return [line.removeprefix(f"{file}:") for line in str(refused.value).splitlines()]


def test_a_whole_file(write: Write) -> None:
    file = write(
        """
        [[schedules]]
        id = "nightly"
        cron = "0 3 * * *"
        timezone = "Europe/Berlin"
        tenant = "acme"
        workflow = "close-the-day"
        input = { depth = 2, shops = ["a", "b"] }
        missed = "all"

        [[schedules]]
        id = "often"
        every = "90s"
        url = "https://shop.example/ticks"
        secret_env = "SHOP_SECRET"
        timeout = "5s"
        attempts = 3
        missed = "skip"
        paused = true

        [schedules.data]
        who = "shop"
        """
    )
    url = "https://shop.example/ticks"
    assert schedules_of(load(file)) == (
        Schedule(
            "nightly",
            Cron("0 3 * * *", "Europe/Berlin"),
            StartWorkflow("close-the-day", {"depth": 2, "shops": ["a", "b"]}),
            "acme",
            "all",
        ),
        Schedule(
            "often",
            Every(90_000),
            CallUrl(url, {"who": "shop"}, None, "SHOP_SECRET", timeout=5.0, attempts=3),
            missed="skip",
            paused=True,
        ),
    )


def test_what_is_left_out_has_its_default(write: Write) -> None:
    (schedule,) = schedules_of(load(write(f"{CALL}secret = '{SECRET}'")))
    assert schedule == Schedule(
        "nightly", Every(60_000), CallUrl("http://shop/", secret=SECRET), "default", "last"
    )


def test_a_schedule_may_come_from_the_environment() -> None:
    environ = {
        "ONCEKEY_SCHEDULES__0__ID": "nightly",
        "ONCEKEY_SCHEDULES__0__CRON": "0 3 * * *",
        "ONCEKEY_SCHEDULES__0__WORKFLOW": "close",
        "ONCEKEY_SCHEDULES__0__INPUT": '{"depth": 2}',
        "ONCEKEY_SCHEDULES__0__PAUSED": "yes",
    }
    (schedule,) = schedules_of(load(None, environ))
    target = StartWorkflow("close", {"depth": 2})
    assert schedule == Schedule("nightly", Cron("0 3 * * *"), target, paused=True)


@pytest.mark.parametrize(
    "text, mistake",
    [
        (
            "[[schedules]]\nevery = '1m'\nworkflow = 'w'\n",
            "1: a schedule needs an id, such as id = ",
        ),
        (f"{HEAD}workflow = 'w'\n", "1: the schedule 'nightly' needs cron = "),
        (f"{HEAD}every = '1m'\n", "1: the schedule 'nightly' needs workflow = "),
        (CALL, "1: the schedule 'nightly' needs secret_env = "),
        (
            f"{HEAD}cron = '* * * * *'\nevery = '1m'\nworkflow = 'w'\n",
            "4: a schedule has cron or every, not both",
        ),
        (
            f"{HEAD}every = '1m'\nworkflow = 'w'\nurl = 'http://shop/'\nsecret_env = 'S'\n",
            "5: a schedule has workflow or url, not both",
        ),
        (
            f"{CALL}secret_env = 'S'\nsecret = '{SECRET}'\n",
            "6: a schedule has secret_env or secret, not both",
        ),
        (
            f"{HEAD}every = '1m'\nworkflow = 'w'\ntimezone = 'UTC'\n",
            "5: timezone only goes with cron",
        ),
        (f"{HEAD}every = '1m'\nworkflow = 'w'\ndata = 1\n", "5: data only goes with url"),
        (f"{HEAD}every = '1m'\nworkflow = 'w'\nattempts = 2\n", "5: attempts only goes with url"),
        (f"{CALL}secret_env = 'S'\ninput = 1\n", "6: input only goes with workflow"),
        ("[[schedules]]\nid = 'a:b'\nevery = '1m'\nworkflow = 'w'\n", "2: 'a:b' is no id of a"),
        (
            f"{HEAD}cron = '0 25 * * *'\nworkflow = 'w'\n",
            "3: cron '0 25 * * *': the hour is '25'; it must be 0-23",
        ),
        (f"{HEAD}cron = '0 3 * *'\nworkflow = 'w'\n", "3: cron '0 3 * *': a line has 5 or 6"),
        (
            f"{HEAD}cron = '0 3 * * *'\ntimezone = 'Berlin'\nworkflow = 'w'\n",
            "4: there is no time zone 'Berlin'",
        ),
        (f"{HEAD}every = '500ms'\nworkflow = 'w'\n", "3: an interval of 500ms is not between 1s"),
        (f"{HEAD}every = '1m'\nworkflow = 'w'\ntenant = 'a b'\n", "5: tenant 'a b' is not a slug"),
        (
            f"{HEAD}every = '1m'\nurl = 'shop'\nsecret_env = 'S'\n",
            "4: 'shop' is no address to call",
        ),
        (f"{CALL}secret_env = 'S'\ntimeout = '1h'\n", "6: a timeout of 3600 s is not between"),
        (f"{CALL}secret_env = 'S'\nattempts = 71\n", "6: schedules[0].attempts must be between"),
        (
            f"{HEAD}every = '1m'\nworkflow = 'w'\nmissed = 'lst'\n",
            "5: schedules[0].missed is 'lst', not one of skip, last, all; did you mean 'last'?",
        ),
        (
            f"{HEAD}every = '1m'\nworkflow = 'w'\ninput = 2026-01-01\n",
            "5: schedules[0].input has 2026-01-01, which is no JSON; write it as text",
        ),
        (
            f"{HEAD}every = '1m'\nworkflow = 'w'\ninput = [1, inf]\n",
            "5: schedules[0].input has inf, which is no JSON",
        ),
        (
            f"{HEAD}every = '1m'\nworkflow = 'w'\ninterval = 1\n",
            "5: there is no setting schedules[0].interval",
        ),
        (
            f"{HEAD}every = '1m'\nworkflow = 'w'\n{HEAD}every = '1m'\nworkflow = 'w'\n",
            "6: schedules[1] and schedules[0] have the same id 'nightly'; keep one",
        ),
    ],
)
def test_a_mistake_is_told_with_its_line_and_a_way_out(
    write: Write, text: str, mistake: str
) -> None:
    (told,) = mistakes(write(text))
    assert told.startswith(mistake)


@pytest.mark.parametrize("written", ["'hunter2'", "1234567890"])
def test_no_mistake_repeats_a_secret(write: Write, written: str) -> None:
    (told,) = mistakes(write(f"{CALL}secret = {written}\n"))
    assert told.startswith("5: ")
    assert written.strip("'") not in told


@pytest.mark.parametrize(
    "text, rule",
    [
        ("depth", "must be JSON"),
        ("[" * 9999, "must be JSON"),
        ("[NaN]", "has nan, which is no JSON"),
    ],
)
def test_what_the_environment_gives_must_be_json(write: Write, text: str, rule: str) -> None:
    file = write(f"{HEAD}every = '1m'\nworkflow = 'w'\n")
    (told,) = mistakes(file, {"ONCEKEY_SCHEDULES__0__INPUT": text})
    assert told.startswith(f"ONCEKEY_SCHEDULES__0__INPUT: schedules[0].input {rule}")


def test_settings_do_not_show_their_secrets() -> None:
    settings = Settings(schedules=(ScheduleSettings("a", secret=SECRET),))
    assert SECRET not in repr(settings)


def test_a_variable_that_is_not_set_is_told_at_the_start(write: Write) -> None:
    settings, ledger = load(write(f"{CALL}secret_env = 'SHOP_SECRET'\n")), memory_ledger()
    with pytest.raises(ConfigurationError, match="the variable SHOP_SECRET, which is not set"):
        scheduler_of(settings, ledger, environ={})
    scheduler_of(settings, ledger, environ={"SHOP_SECRET": SECRET})
    ledger.close()
