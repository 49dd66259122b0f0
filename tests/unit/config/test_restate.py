"""`store.url = "restate://…"` and `[restate]`: what is taken, and how mistakes are told."""

from pathlib import Path

import pytest

from oncekey.config import load
from oncekey.core.errors import ConfigurationError
from oncekey.stores.restate.place import RestatePlace, place_of

SECRET = "hunter2"
FORM = "restate://host:8080[,host:8080…]"


@pytest.mark.parametrize(
    "url, place",
    [
        ("restate://db", RestatePlace(("http://db:8080",), ("http://db:9070",))),
        (
            "restate://a:1,b:2?admin=a:3,b",
            RestatePlace(("http://a:1", "http://b:2"), ("http://a:3", "http://b:9070")),
        ),
        (
            "restate://a:1,a:2",
            RestatePlace(("http://a:1", "http://a:2"), ("http://a:9070",)),
        ),
        (
            "restate://[::1]:1?endpoint=http://10.0.0.1:9081/shop/&space=shop-2",
            RestatePlace(
                ("http://[::1]:1",),
                ("http://[::1]:9070",),
                endpoint="http://10.0.0.1:9081/shop",
                space="shop-2",
            ),
        ),
    ],
)
def test_a_place_is_read_from_its_url(url: str, place: RestatePlace) -> None:
    assert load(None, {"ONCEKEY_STORE__URL": url}).store.url == url
    assert place_of(url) == place


@pytest.mark.parametrize(
    "bind, listens",
    [
        ("", ("lb", 9080)),
        ("&bind=0.0.0.0", ("0.0.0.0", 9080)),
        ("&bind=0.0.0.0:81", ("0.0.0.0", 81)),
        ("&bind=[::]:0", ("::", 0)),
    ],
)
def test_it_may_listen_elsewhere_than_it_is_called(bind: str, listens: tuple[str, int]) -> None:
    assert place_of(f"restate://db?endpoint=http://lb:9080{bind}").listens_on == listens


@pytest.mark.parametrize(
    "url, told",
    [
        ("restat://db", "did you mean 'restate'?"),
        ("restate://", f"is 'restate://', not of the form {FORM}"),
        ("restate://db/app", f"is 'restate://db/app', not of the form {FORM}"),
        ("restate://d b", f"is 'restate://d b', not of the form {FORM}"),
        ("restate://[::1", "is no URL: Invalid IPv6 URL"),
        ("restate://db:x", "has 'db:x', which is no host: Port could not be cast"),
        ("restate://a,,b", "has '', which is no host; write "),
        ("restate://db?adnim=x", "has the option 'adnim'; did you mean 'admin'?"),
        ("restate://db?color=red", "has the option 'color', none of admin, endpoint, bind, "),
        ("restate://db?admin=a&admin=b", "has an option twice; several hosts are separated by"),
        ("restate://db?endpoint=lb:9080", "has endpoint=lb:9080, no address that Restate could "),
        ("restate://db?endpoint=https://lb:1", "has endpoint=https://lb:1, no address that "),
        ("restate://db?endpoint=http://lb", "has endpoint=http://lb, no address that Restate "),
        ("restate://db?bind=0.0.0.0:x", "has bind=0.0.0.0:x, no address to listen on; write "),
        ("restate://db?bind=a/b", "has bind=a/b, no address to listen on; write bind=0.0.0.0"),
        ("restate://db?space=Shop", "has space=Shop; a space is 1 to 32 of a-z, 0-9 and '-'"),
        ("restate://db?shares=1", "has shares=1, neither yes nor no"),
        ("restate://db?identity=me", "has an identity that is no public key of a cluster; write"),
        (f"restate://me:{SECRET}@db", "has a user or a password in it, and Restate knows neither"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, url: str, told: str) -> None:
    file = tmp_path / "oncekey.toml"
    file.write_text(f"[server]\nport = 1\n\n[store]\nurl = '{url}'\n")
    with pytest.raises(ConfigurationError) as raised:
        load(file)
    message = str(raised.value)
    assert message.startswith(f"{file}:5: store.url ")
    assert told in message
    assert SECRET not in message


@pytest.mark.parametrize("url", ["restate://", "restate://db?color=red"])
def test_code_is_told_the_same(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^the store url (is|has) "):
        place_of(url)


@pytest.mark.parametrize(
    "text, told",
    [
        ("on_max_attempts = 'puase'", "2: restate.on_max_attempts is 'puase', not one of pause, "),
        ("max_attempts = 0", "2: restate.max_attempts must be between 1 and "),
        ("headers = ['X-A', 'Cookie']", "2: restate.headers has 'cookie': Restate keeps requests"),
        ("headers = ['Authorization']", "credentials must not be kept; the service behind is told"),
        ("headers = ['X A']", "2: restate.headers has 'X A', which is not the name of a header"),
        ("max_atempts = 3", "2: there is no setting restate.max_atempts; did you mean 'max_attem"),
    ],
)
def test_mistakes_of_the_section(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "oncekey.toml"
    file.write_text(f"[restate]\n{text}\n")
    with pytest.raises(ConfigurationError) as raised:
        load(file)
    assert told in str(raised.value)
