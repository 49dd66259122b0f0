"""`oncekey check` on the edge: what it tries, what is a warning, and what is a mistake."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from joserfc.jwk import ECKey

from tests.fixtures.command import Run

SECRET = "hunter2-" * 8
ROUTE = "[[routes]]\npath = '/a'\npolicy = 'REQUIRED_A'\nupstream = 'orders'\n"

Write = Callable[[str], None]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(text: str) -> None:
        (tmp_path / "oncekey.toml").write_text(f"store.url = 'memory://'\n{text}\n")

    return write_file


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Nobody listens on it, and nobody else gets it."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.fixture
def keys() -> Iterator[str]:
    """Where a JWKS is published, with one key that can be used, and one that cannot."""
    public = ECKey.generate_key("P-256").as_dict(private=False)
    document = json.dumps({"keys": [public, {"kty": "unknown"}]}).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/keys" else 404)
            self.end_headers()
            self.wfile.write(document)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_what_is_there_is_told(
    oncekey: Run, write: Write, tmp_path: Path, listening: int, keys: str
) -> None:
    path = tmp_path / "app.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        write(
            f"[upstreams.orders]\nurl = 'http://127.0.0.1:{listening}'\n"
            f"[upstreams.stock]\nurl = 'unix:{path}'\n{ROUTE}"
            "[[routes]]\npath = '/b'\nmethods = ['GET']\nupstream = 'stock'\n"
            f"[auth.jwt]\njwks_url = '{keys}/keys'\naudience = 'orders'\nissuer = 'us'\n"
        )
        done = oncekey("check", "--strict")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "configuration: ok, 2 routes, 2 upstreams",
        f"upstream orders: http://127.0.0.1:{listening}, reachable",
        f"upstream stock: http+unix://{str(path).replace('/', '%2F')}, reachable",
        f"auth.jwt.jwks_url: {keys}/keys, 1 key that fits",
        "store: memory://, lost when the process ends",
    ]


def test_what_cannot_be_reached_is_a_warning(
    oncekey: Run, write: Write, closed_port: int, keys: str, tmp_path: Path
) -> None:
    url = f"http://127.0.0.1:{closed_port}"
    write(
        f"[upstreams.orders]\nurl = '{url}'\n[upstreams.stock]\nurl = 'unix:{tmp_path}/none'\n"
        f"{ROUTE}[auth.jwt]\njwks_url = '{keys}/other'\naudience = 'a'\nissuer = 'b'\n"
    )
    done = oncekey("check")
    assert done.returncode == 0
    unused, orders, stock, tokens = done.stderr.splitlines()
    assert unused == "warning: upstreams.stock: no route goes there"
    assert orders == f"warning: upstream orders: {url}, not reachable: Connection refused"
    assert stock.endswith("%2Fnone, not reachable: No such file or directory")
    assert tokens.startswith(f"warning: auth.jwt.jwks_url: {keys}/other, not usable: ")
    strict = oncekey("check", "--strict")
    assert strict.returncode == 1
    assert strict.stderr.endswith("error: 4 warnings, see above\n")


def test_offline_tries_nothing(oncekey: Run, write: Write, closed_port: int) -> None:
    url = f"http://127.0.0.1:{closed_port}"
    write(
        f"[upstreams.orders]\nurl = '{url}'\n{ROUTE}"
        f"[auth.jwt]\njwks_url = '{url}/keys'\naudience = 'a'\nissuer = 'b'\n"
    )
    done = oncekey("check", "--offline", "--strict")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "text, setting, variable",
    [
        ("[auth.jwt]\nsecret_env = 'JWT'\naudience = 'a'", "auth.jwt.secret_env", "JWT"),
        ("auth.api_keys.provider = 'unkey'", "auth.unkey.root_key_env", "UNKEY_ROOT_KEY"),
        (
            "[webhooks]\nsecrets = 'vault'\nvault.url = 'https://vault.example'",
            "webhooks.vault.token_env",
            "VAULT_TOKEN",
        ),
        (
            "[[schedules]]\nid = 'a'\nevery = '1h'\nurl = 'https://a'\nsecret_env = 'SIGN'",
            "schedules[0].secret_env",
            "SIGN",
        ),
    ],
)
def test_a_secret_is_there_or_it_is_told_which(
    oncekey: Run, write: Write, text: str, setting: str, variable: str
) -> None:
    write(text)
    told = f"{setting}: the variable {variable} is not set; put the secret into it"
    missing = oncekey("check")
    assert missing.returncode == 1
    assert missing.stderr == f"error: {told}\n"
    offline = oncekey("check", "--offline")
    assert (offline.returncode, offline.stderr) == (0, f"warning: {told}\n")
    there = oncekey("check", **{variable: SECRET})
    assert (there.returncode, there.stderr) == (0, "")
    assert f"{setting}: {variable}, set\n" in there.stdout
    assert "hunter2" not in there.stdout


def test_keys_are_read_from_their_file(oncekey: Run, write: Write, tmp_path: Path) -> None:
    write("[auth.jwt]\njwks_file = 'keys.json'\naudience = 'a'")
    missing = oncekey("check", "--offline")
    assert missing.returncode == 1
    assert "auth.jwt.jwks_file: " in missing.stderr
    public = ECKey.generate_key("P-256").as_dict(private=False)
    (tmp_path / "keys.json").write_text(json.dumps({"keys": [public]}))
    assert oncekey("check", "--offline").returncode == 0


@pytest.mark.parametrize(
    "text, warning",
    [
        ("[auth.jwt]\njwks_url = 'https://a'\nissuer = 'b'", "auth.jwt: tokens for any audience "),
        ("[auth.jwt]\njwks_url = 'https://a'\naudience = 'b'", "auth.jwt: tokens of any issuer "),
        ("[upstreams.a]\nurl = 'http://a'", "upstreams.a: no route goes there"),
        (
            f"[upstreams.orders]\nurl = 'http://a'\n{ROUTE}identity = 'optional'",
            "routes[0]: callers without credentials are one caller on /a, who sees the answers to ",
        ),
        (
            "[webhooks]\nsecrets = 'vault'\nvault.url = 'http://vault.example'",
            "webhooks.vault.url: secrets come over plain http from http://vault.example; use https",
        ),
    ],
)
def test_what_is_worth_a_second_look(oncekey: Run, write: Write, text: str, warning: str) -> None:
    write(text)
    done = oncekey("check", "--offline", VAULT_TOKEN="token")
    assert done.returncode == 0
    (told,) = done.stderr.splitlines()
    assert told.startswith(f"warning: {warning}")


EXPOSED = "every account of this machine can read the secrets in it; chmod 600 it, "


@pytest.mark.parametrize(
    "text",
    [
        f"[auth.jwt]\nsecret = '{SECRET}'\naudience = 'a'",
        f"[[schedules]]\nid = 'a'\nevery = '1h'\nurl = 'https://a'\nsecret = '{SECRET}'",
    ],
    ids=["tokens", "schedules"],
)
def test_a_file_with_secrets_is_not_for_everybody(
    oncekey: Run, write: Write, tmp_path: Path, text: str
) -> None:
    write(text)
    warning = f"warning: oncekey.toml: {EXPOSED}or give secrets by the environment\n"
    for mode, told in ((0o644, warning), (0o640, ""), (0o600, "")):
        (tmp_path / "oncekey.toml").chmod(mode)
        done = oncekey("check", "--offline")
        assert (done.returncode, done.stderr) == (0, told)


def test_nor_is_one_with_the_password_of_the_store(oncekey: Run, tmp_path: Path) -> None:
    file = tmp_path / "oncekey.toml"
    file.write_text("store.url = 'postgresql://shop:hunter2@db.example/shop'")
    file.chmod(0o644)
    done = oncekey("check", "--offline")
    assert (EXPOSED in done.stderr, "hunter2" in done.stderr) == (True, False)
    # One that the environment gives is not in the file.
    file.write_text("store.url = 'postgresql://shop@db.example/shop'")
    url = "postgresql://shop:hunter2@db.example/shop"
    assert oncekey("check", "--offline", ONCEKEY_STORE__URL=url).stderr == ""


def test_nor_is_a_jwks_with_what_signs(oncekey: Run, write: Write, tmp_path: Path) -> None:
    write("[auth.jwt]\njwks_file = 'keys.json'\naudience = 'a'")
    keys = tmp_path / "keys.json"
    secret = {"kty": "oct", "k": "aHVudGVyMi1odW50ZXIyLWh1bnRlcjItaHVudGVyMi0"}
    keys.write_text(json.dumps({"keys": [secret]}))
    keys.chmod(0o644)
    told = oncekey("check", "--offline").stderr
    assert told == f"warning: {keys}: {EXPOSED}as its secrets sign tokens\n"
    keys.chmod(0o600)
    assert oncekey("check", "--offline").stderr == ""


def test_where_there_is_no_file_it_says_so(oncekey: Run) -> None:
    done = oncekey("check")
    assert done.returncode == 0
    assert done.stderr.startswith("warning: there is no oncekey.toml here: ")
    assert oncekey("check", "--strict").returncode == 1
