"""`[auth]`: one place for keys, algorithms that fit them, and no secret in any message."""

from pathlib import Path

import pytest

from oncekey.config import load
from oncekey.config.kinds import ALGORITHMS
from oncekey.core.errors import ConfigurationError
from oncekey.edge.identity import jwk

SECRET = "hunter2-" * 8
PEM = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQ\n-----END PUBLIC KEY-----"
JWKS = "jwks_url = 'https://id.example/keys'"


def mistakes(tmp_path: Path, text: str, table: str = "auth.jwt") -> list[str]:
    file = tmp_path / "oncekey.toml"
    file.write_text(f"[{table}]\n{text}\n")
    with pytest.raises(ConfigurationError) as caught:
        load(file, {})
    assert "hunter2" not in str(caught.value)
    return [line.removeprefix(f"{file}:") for line in str(caught.value).splitlines()]


def test_tokens_are_read(tmp_path: Path) -> None:
    file = tmp_path / "oncekey.toml"
    file.write_text(
        f"[auth.jwt]\n{JWKS}\nalgorithms = ['RS256', 'ES256']\nissuer = 'https://id.example'\n"
        "audience = 'orders'\nclaims = { tenant = 'org.id' }\nleeway = '0s'\nrefresh = '5m'\n"
        "subject_type = 'user'\ntenant = 'acme'\n"
    )
    jwt = load(file, {}).auth.jwt
    assert jwt is not None
    assert (jwt.jwks_url, jwt.algorithms) == ("https://id.example/keys", ("RS256", "ES256"))
    assert (jwt.issuer, jwt.audience) == ("https://id.example", ("orders",))
    assert jwt.claims == type(jwt.claims)("org.id", "project_id", "sub")
    assert (jwt.leeway, jwt.refresh, jwt.subject_type, jwt.tenant) == (0.0, 300.0, "user", "acme")


def test_without_its_table_no_token_is_accepted() -> None:
    auth = load(None, {}).auth
    assert auth.jwt is None
    assert auth.gateway.trusted == ()
    assert (auth.unkey.url, auth.unkey.root_key_env) == ("https://api.unkey.com", "UNKEY_ROOT_KEY")


def test_the_representation_of_settings_has_no_secret(tmp_path: Path) -> None:
    url = "postgresql://shop:hunter2@db.example/shop"
    settings = load(None, {"ONCEKEY_AUTH__JWT__SECRET": SECRET, "ONCEKEY_STORE__URL": url})
    assert settings.auth.jwt is not None
    assert settings.auth.jwt.secret == SECRET
    assert settings.store.url == url
    assert "hunter2" not in repr(settings)
    assert "hunter2" not in str(settings)


def test_a_public_key_may_have_its_line_breaks_written_out_in_the_environment() -> None:
    written = PEM.replace("\n", "\\n")
    jwt = load(None, {"ONCEKEY_AUTH__JWT__PUBLIC_KEY": written}).auth.jwt
    assert jwt is not None
    assert jwt.public_key == PEM


@pytest.mark.parametrize(
    "text, mistake",
    [
        ("issuer = 'x'", "1: auth.jwt says nowhere what tokens are signed with: add jwks_url, "),
        (f"{JWKS}\nsecret = '{SECRET}'", "3: auth.jwt has jwks_url and secret; keys come from one"),
        (
            f"secret_env = 'S'\n{JWKS}",
            "2: auth.jwt has jwks_url and secret_env; keys come from one",
        ),
        (
            f"{JWKS}\nalgorithms = ['none']",
            "3: auth.jwt.algorithms has 'none', under which anybody",
        ),
        (
            f"{JWKS}\nalgorithms = ['NONE']",
            "3: auth.jwt.algorithms has 'none', under which anybody",
        ),
        (f"{JWKS}\nalgorithms = ['RS265']", "3: auth.jwt.algorithms has 'RS265', not one of HS256"),
        (f"{JWKS}\nalgorithms = []", "3: auth.jwt.algorithms must not be an empty list"),
        (f"{JWKS}\nalgorithms = ['HS256']", "3: auth.jwt.algorithms has HS256, and jwks_url has "),
        (
            f"secret = '{SECRET}'\nalgorithms = ['RS256']",
            "3: auth.jwt.algorithms has RS256, which ",
        ),
        (
            "secret = 'hunter2'",
            "2: the secret is shorter than the 32 bytes that HS256 needs; make",
        ),
        (
            f"secret = '{SECRET[:48]}'\nalgorithms = ['HS256', 'HS512']",
            "2: the secret is shorter than the 64 bytes that HS512 needs; make one with `open",
        ),
        ("secret = 7", "2: auth.jwt.secret must be text in quotes"),
        ("secert = 'hunter2'", "2: there is no setting auth.jwt.secert; did you mean 'secret'?"),
        ("secret_env = 'hunter2!'", "2: auth.jwt.secret_env must be the name of a variable, such"),
        (
            "public_key = 'hunter2'",
            "2: auth.jwt.public_key must be PEM text: -----BEGIN PUBLIC KEY",
        ),
        (
            "public_key = '''-----BEGIN PRIVATE KEY-----\nhunter2'''",
            "2: auth.jwt.public_key is a private key; who only checks tokens needs the public one",
        ),
        ("jwks_url = 'id.example/keys'", "2: auth.jwt.jwks_url is 'id.example/keys', not of the "),
        ("jwks_url = 'http://id.example'", "2: auth.jwt.jwks_url: http://id.example is plain http"),
        (f"{JWKS}\nleeway = '6m'", "3: auth.jwt.leeway must be between 0 and 300 seconds, not 360"),
        (
            f"{JWKS}\nsubject_type = 'robot'",
            "3: auth.jwt.subject_type is 'robot', not one of typed",
        ),
        (f"{JWKS}\ntenant = 'a:b'", "3: auth.jwt.tenant tenant 'a:b' is not a slug"),
        (f"{JWKS}\naudience = []", "3: auth.jwt.audience must not be an empty list"),
        (f"{JWKS}\nclaims = 'sub'", "3: auth.jwt.claims must be a table"),
        (
            f"{JWKS}\nclaims = {{ tennant = 'a' }}",
            "3: there is no setting auth.jwt.claims.tennant; ",
        ),
    ],
)
def test_a_mistake_about_tokens_has_its_line(tmp_path: Path, text: str, mistake: str) -> None:
    told = mistakes(tmp_path, text)
    assert told[0].startswith(mistake)


def test_a_secret_in_the_environment_is_looked_at_where_it_is(tmp_path: Path) -> None:
    file = tmp_path / "oncekey.toml"
    file.write_text("[auth.jwt]\nsecret_env = 'JWT_SECRET'\n")
    assert load(file, {"JWT_SECRET": SECRET}) == load(file, {})
    with pytest.raises(ConfigurationError) as caught:
        load(file, {"JWT_SECRET": "hunter2"})
    assert f"{file}:2: the secret is shorter than the 32 bytes that HS256" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_what_is_wrong_by_itself_leads_to_no_second_mistake(tmp_path: Path) -> None:
    assert len(mistakes(tmp_path, "jwks_url = 'nowhere'\nalgorithms = ['HS256']")) == 1


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080/keys", "http://localhost/keys"])
def test_plain_http_is_for_this_machine(url: str) -> None:
    jwt = load(None, {"ONCEKEY_AUTH__JWT__JWKS_URL": url}).auth.jwt
    assert jwt is not None
    assert jwt.jwks_url == url


def test_the_algorithms_are_those_that_can_be_verified() -> None:
    assert set(ALGORITHMS) == jwk.ALGORITHMS


@pytest.mark.parametrize(
    "text, mistake",
    [
        ("trusted = ['0.0.0.0/0']", "2: auth.gateway.trusted has '0.0.0.0/0', which is half the"),
        ("trusted = ['::/0']", "2: auth.gateway.trusted has '::/0', which is half the world; name"),
        ("trusted = ['128.0.0.0/1']", "2: auth.gateway.trusted has '128.0.0.0/1', which is half "),
        (
            "trusted = ['gateway']",
            "2: auth.gateway.trusted has 'gateway', which is no address and ",
        ),
        ("trusted = ['10.0.0.1/8']", "2: auth.gateway.trusted has '10.0.0.1/8', which is no addr"),
        ("trusted = []", "2: auth.gateway.trusted must not be an empty list"),
        (
            "headers = { tenant = 'X-Org' }",
            "2: auth.gateway.headers are believed from nobody: add ",
        ),
        (
            "trusted = ['10.0.0.1']\nheaders = { tenant = 'x-subject' }",
            "3: auth.gateway.headers: tenant, project and subject must be three headers",
        ),
        (
            "trusted = ['10.0.0.1']\nheaders = { subject = 'Authorization' }",
            "3: auth.gateway.headers: authorization has a meaning of its own; choose another",
        ),
        (
            "trusted = ['10.0.0.1']\nheaders = { subject = 'X Y' }",
            "3: auth.gateway.headers.subject is 'X Y', which is not the name of a header",
        ),
    ],
)
def test_a_mistake_about_gateways_has_its_line(tmp_path: Path, text: str, mistake: str) -> None:
    (told,) = mistakes(tmp_path, text, "auth.gateway")
    assert told.startswith(mistake)


def test_gateways_are_addresses_and_networks(tmp_path: Path) -> None:
    trusted = {"ONCEKEY_AUTH__GATEWAY__TRUSTED": "127.0.0.1, 10.0.0.0/8,fd00::/8"}
    gateway = load(None, trusted).auth.gateway
    assert gateway.trusted == ("127.0.0.1", "10.0.0.0/8", "fd00::/8")
    assert gateway.headers.subject == "X-Subject"


@pytest.mark.parametrize(
    "text, mistake",
    [
        ("url = 'http://unkey.example'", "2: auth.unkey.url: http://unkey.example is plain http"),
        ("root_key_env = 'unkey_hunter2-x'", "2: auth.unkey.root_key_env must be the name of a "),
        ("root_key = 'hunter2'", "2: there is no setting auth.unkey.root_key; did you mean "),
        ("cache = '1h'", "2: auth.unkey.cache must be between 0 and 300 seconds, not 3600"),
    ],
)
def test_a_mistake_about_unkey_has_its_line(tmp_path: Path, text: str, mistake: str) -> None:
    (told,) = mistakes(tmp_path, text, "auth.unkey")
    assert told.startswith(mistake)
