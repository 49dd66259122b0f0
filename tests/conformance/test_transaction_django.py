"""Exactly once inside Django's `atomic`, in a process that has Django's settings to itself."""

import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tests.fixtures.stores import Place

ROOT = Path(__file__).parents[2]
SCRIPT = """
import json, sys
import django
from django.conf import settings

url, database = sys.argv[1], json.loads(sys.argv[2])
settings.configure(DATABASES={"default": database}, USE_TZ=True)
django.setup()
from django.db import connection, transaction
import oncekey

ledger = oncekey.open(url)
found = {}
with connection.cursor() as cursor:
    cursor.execute("CREATE TABLE payments (note TEXT)")

def pay():
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO payments (note) VALUES ('100%')")
    return "paid"

def payments():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM payments")
        return cursor.fetchone()[0]

try:
    ledger.once("k", pay, transaction=connection)
except oncekey.ConfigurationError as error:
    found["outside"] = str(error)
try:
    with transaction.atomic():
        ledger.once("k", pay, transaction=connection)
        raise ZeroDivisionError
except ZeroDivisionError:
    found["rolled back"] = payments()
with transaction.atomic():
    with transaction.atomic():
        found["first"] = ledger.once("k", pay, transaction=connection)
with transaction.atomic():
    found["second"] = ledger.once("k", pay, transaction=connection)
found["payments"] = payments()
connection.close()
ledger.close()
print(json.dumps(found))
"""


def database_of(url: str, dialect: str) -> dict[str, object]:
    if dialect == "sqlite":
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": url.removeprefix("sqlite:///")}
    address = urlsplit(url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": address.path.lstrip("/"),
        "USER": address.username,
        "HOST": address.hostname,
        "PORT": address.port,
        "OPTIONS": {"options": unquote(address.query.removeprefix("options="))},
    }


def test_effect_and_outcome_commit_or_roll_back_together(database: Place) -> None:
    settings = json.dumps(database_of(database.url, database.dialect))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, database.url, settings],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    found = json.loads(done.stdout)
    assert "begin a transaction" in found.pop("outside")
    assert found == {"rolled back": 0, "first": "paid", "second": "paid", "payments": 1}
