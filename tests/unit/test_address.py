"""URLs of stores: what they name, and what is shown of them."""

from pathlib import Path

import pytest

from oncekey.compose.address import Memory, Postgres, SqliteFile, address_of, without_secrets
from oncekey.core.errors import ConfigurationError

SECRET = "s3cr3t"


def test_the_three_places(tmp_path: Path) -> None:
    assert address_of("memory://") == Memory()
    assert address_of("sqlite:///keys.db") == SqliteFile(Path("keys.db"))
    assert address_of(f"sqlite:///{tmp_path}/keys.db") == SqliteFile(tmp_path / "keys.db")
    assert address_of("sqlite:///~/keys.db") == SqliteFile(Path.home() / "keys.db")
    assert address_of("postgresql://db/app") == Postgres("postgresql://db/app")
    assert address_of("postgres://db/app") == Postgres("postgres://db/app")


@pytest.mark.parametrize(
    "url, told",
    [
        ("", "is none of: sqlite"),
        ("memory", "is none of: sqlite"),
        ("redis://localhost", "is none of: sqlite"),
        (f"mysql://me:{SECRET}@db/app", "'mysql://me:\\*\\*\\*@db/app' is none of: sqlite"),
        ("sqlite://", "three slashes"),
        ("sqlite:///", "three slashes"),
        ("sqlite://keys.db", "three slashes"),
        ("sqlite:///:memory:", "use memory://"),
        ("sqlite:////nowhere/keys.db", "the folder /nowhere does not exist"),
    ],
)
def test_what_names_no_place(url: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told) as refused:
        address_of(url)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "text, shown",
    [
        ("postgresql://me:{}@db/app", "postgresql://me:***@db/app"),
        ("postgresql://:{}@db/app", "postgresql://:***@db/app"),
        ("postgresql://me:a@{}@db", "postgresql://me:***@db"),
        ("postgresql://me:a/{}@db", "postgresql://me:***@db"),
        ("postgresql://me:a {}@db", "postgresql://me:***@db"),
        ("cannot reach 'postgresql://me:{}@db' now", "cannot reach 'postgresql://me:***@db' now"),
        ("postgresql://db/app?password={}&x=1", "postgresql://db/app?password=***&x=1"),
        ("host=db sslpassword={} user=me", "host=db sslpassword=*** user=me"),
    ],
)
def test_no_password_is_shown(text: str, shown: str) -> None:
    assert without_secrets(text.format(SECRET)) == shown


def test_what_is_hidden_already_stays_as_it_is() -> None:
    text = "postgresql://me:***@db is not user@host"
    assert without_secrets(text) == text


@pytest.mark.parametrize(
    "text", ["sqlite:////var/keys.db", "postgresql://me@db:5432/app", "http://127.0.0.1:8700/a"]
)
def test_what_holds_none_stays_as_it_is(text: str) -> None:
    assert without_secrets(text) == text
