"""`[webhooks]`, `[[providers]]`, `[edge]` and `[admin]`."""

from pathlib import Path

import pytest

from oncekey.config import load
from oncekey.config.providers import declared_of
from oncekey.core.errors import ConfigurationError
from oncekey.webhooks.providers.declared import IdentifierAt, SignatureAt, TimestampAt

ACME = (
    "[[providers]]\nname = 'acme'\nidentifier = { header = 'X-Acme-Delivery' }\n"
    "signature = { header = 'X-Acme-Signature' }\n"
)


def mistakes(tmp_path: Path, text: str) -> list[str]:
    file = tmp_path / "oncekey.toml"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load(file, {})
    return [line.removeprefix(f"{file}:") for line in str(caught.value).splitlines()]


def test_the_defaults() -> None:
    settings = load(None, {})
    webhooks = settings.webhooks
    assert (webhooks.public_url, webhooks.max_body, webhooks.secrets) == (None, 5242880, "local")
    assert (webhooks.key_env, webhooks.key_file) == ("ONCEKEY_WEBHOOK_KEY", None)
    assert (settings.edge.head_timeout, settings.edge.body_timeout) == (10.0, 30.0)
    assert (settings.edge.decide, settings.admin.enabled) == (True, True)


@pytest.mark.parametrize(
    "written, size",
    [("'5MB'", 5 << 20), ("'5 MiB'", 5 << 20), ("'64kB'", 64 << 10), ("'100B'", 100), ("7", 7)],
)
def test_a_size_is_bytes_or_has_a_unit(tmp_path: Path, written: str, size: int) -> None:
    file = tmp_path / "oncekey.toml"
    file.write_text(f"webhooks.max_body = {written}\n")
    assert load(file, {}).webhooks.max_body == size


@pytest.mark.parametrize(
    "text, mistake",
    [
        ("max_body = '5 megabytes'", "max_body must be a size such as '5MB', or a number of bytes"),
        ("max_body = '-1MB'", "max_body must be a size such as '5MB', or a number of bytes, not"),
        ("max_body = '1GB'", "max_body must be between 1 and 268435456, not 1073741824"),
        ("max_body = 0", "max_body must be between 1 and 268435456, not 0"),
        ("max_body = 1.5", "max_body must be a whole number, not 1.5"),
        ("public_url = 'hooks.example'", "public_url is 'hooks.example', not of the form"),
        ("public_url = 'ws://hooks.example'", "public_url is 'ws://hooks.example', not of the "),
        (
            "public_url = 'https://hooks.example/in'",
            "public_url is what stands before the path of a webhook: leave it at https://hooks.exa",
        ),
        ("public_url = 'https://hooks.example?a=1'", "public_url is what stands before the path"),
        ("secrets = 'keychain'", "secrets is 'keychain', not one of local, vault"),
        ("secrets = 'vault'", 'secrets = "vault" needs to know where it is: add [webhooks.vault] '),
        ("vault.url = 'https://vault'", 'vault is only asked with webhooks.secrets = "vault"'),
        ("key_env = 'the key'", "key_env must be the name of a variable, such as 'JWT_SECRET'"),
    ],
)
def test_a_mistake_about_webhooks_has_its_line(tmp_path: Path, text: str, mistake: str) -> None:
    (told,) = mistakes(tmp_path, f"[webhooks]\n{text}\n")
    assert told.startswith(f"2: webhooks.{mistake}")


def test_an_approle_has_two_halves(tmp_path: Path) -> None:
    text = "webhooks.secrets = 'vault'\n[webhooks.vault]\nurl = 'https://vault'\n"
    assert mistakes(tmp_path, f"{text}role_id_env = 'ROLE'\n") == [
        "4: an AppRole has two halves: give role_id_env and secret_id_env, or none of them"
    ]


@pytest.mark.parametrize(
    "text, mistake",
    [
        (
            "[edge]\nbody_timeout = '2h'",
            "2: edge.body_timeout must be between 0.01 and 3600 seconds",
        ),
        ("[edge]\ndecide = 'yes'", "2: edge.decide must be true or false, not the text 'yes'"),
        ("[admin]\nenable = true", "2: there is no setting admin.enable; did you mean 'enabled'?"),
    ],
)
def test_a_mistake_about_the_edge_has_its_line(tmp_path: Path, text: str, mistake: str) -> None:
    (told,) = mistakes(tmp_path, text)
    assert told.startswith(mistake)


def test_a_provider_is_declared(tmp_path: Path) -> None:
    file = tmp_path / "oncekey.toml"
    file.write_text(
        "[[providers]]\nname = 'acme'\nidentifier = { json = '/event/id' }\n"
        "[providers.signature]\nheader = 'X-Acme-Signature'\nalgorithm = 'hmac-sha512'\n"
        "encoding = 'base64'\nprefix = 'v1='\nsigned = '{timestamp}.{body}'\n"
        "timestamp = { header = 'X-Acme-Time', tolerance = '2m' }\n"
    )
    (each,) = load(file, {}).providers
    declared = declared_of(each)
    assert declared.identifier == IdentifierAt(json="/event/id")
    assert declared.signature == SignatureAt(
        "X-Acme-Signature",
        "hmac-sha512",
        "base64",
        "v1=",
        "{timestamp}.{body}",
        TimestampAt("X-Acme-Time", 120.0),
    )


@pytest.mark.parametrize(
    "old, new, mistake",
    [
        ("name = 'acme'\n", "", '1: a provider needs a name, such as name = "acme"'),
        ("'acme'", "'stripe'", "2: provider stripe: OnceKey knows a provider of that name already"),
        ("'acme'", "'Acme'", "2: the name of a provider must be a-z, 0-9, '-' or '_'"),
        ("header = 'X-Acme-Delivery'", "", "3: provider acme: identifier must be one of header, "),
        ("{ header = 'X-Acme-Delivery' }", "{ json = 'id' }", "3: provider acme: 'id' is not a "),
        ("header = 'X-Acme-Signature'", "", "4: provider acme: signature.header is missing"),
        ("'X-Acme-Signature'", "'X Y'", "4: providers[0].signature.header is 'X Y', which is not"),
        ("-Signature'", "-Signature', algorithm = 'md5'", "4: providers[0].signature.algorithm is"),
        ("-Signature'", "-Signature', signed = 'url'", "4: provider acme: signed: 'url' must be "),
        ("-Signature'", "-Signature', sgined = 'body'", "4: there is no setting providers[0].sig"),
    ],
)
def test_a_mistake_in_a_provider_has_its_line(
    tmp_path: Path, old: str, new: str, mistake: str
) -> None:
    (told,) = mistakes(tmp_path, ACME.replace(old, new))
    assert told.startswith(mistake)


def test_two_providers_have_two_names(tmp_path: Path) -> None:
    assert mistakes(tmp_path, ACME + ACME) == [
        "6: provider acme: providers[0] has that name; choose another"
    ]
