"""The page on Django, followed step by step in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from oncekey.integrations.django import checks
from oncekey.integrations.django.preferences import DEFAULTS
from tests.fixtures.pages import DOCS

PAGE = (DOCS / "how-to" / "django.md").read_text()
FILES = re.findall(r"(?ms)^```python (\S+)\n(.*?)^```", PAGE)
COMMANDS = re.findall(r"(?m)^(?:python manage\.py|django-admin) .*", PAGE)


def run(folder: Path, words: str) -> str:
    """A command of the page, in a folder of its own."""
    python = f"{sys.executable} -m django" if words.startswith("django-admin") else sys.executable
    command = f"{python} {words.partition(' ')[2]}".split()
    environ = {name: value for name, value in os.environ.items() if "DJANGO" not in name}
    done = subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """What the page makes of an empty folder."""
    for words in COMMANDS[:2]:
        run(tmp_path, words)
    settings = tmp_path / "shop" / "settings.py"
    for name, code in FILES:
        file = tmp_path / name
        if file == settings:
            file.write_text(file.read_text() + "\n" + code)
        else:
            file.write_text(code)
    settings.write_text(settings.read_text() + '\nINSTALLED_APPS += ["rest_framework"]\n')
    return tmp_path


def test_every_step_works(project: Path) -> None:
    for words in COMMANDS[2:4]:
        run(project, words)

    assert "no issues" in run(project, "python manage.py check")
    assert "Ran 4 tests" in run(project, "python manage.py test")
    assert "0 keys deleted" in run(project, "python manage.py cleanup_idempotency_keys")
    run(project, "python manage.py shell -c __import__('orders.api'),__import__('orders.classes')")
    run(project, "python manage.py migrate oncekey zero")


def test_every_command_is_one_that_there_is() -> None:
    assert [words.split()[2] for words in COMMANDS if words.startswith("python")] == [
        "startapp",
        "makemigrations",
        "migrate",
        "runserver",
        "cleanup_idempotency_keys",
        "cleanup_idempotency_keys",
    ]


def test_every_check_is_on_the_page() -> None:
    source = Path(checks.__file__).read_text()

    assert re.findall(r"(?m)^\| `(oncekey\.\w+)`", PAGE) == sorted(
        re.findall(r'id="(oncekey\.\w+)"', source)
    )


def test_every_setting_is_on_the_page_with_its_default() -> None:
    rows = dict(re.findall(r"(?m)^\| `(IDEMPOTENCY_\w+)` \| `([^`]*)` \|", PAGE))
    values: dict[str, Any] = {name: eval(text) for name, text in rows.items()}

    assert values == DEFAULTS
