"""`oncekey webhooks` with secrets in a vault: used when there, written when not."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.command import Run
from tests.fixtures.shelf import Shelf
from tests.fixtures.vault import ROLE_ID, SECRET_ID, TOKEN, Vault

PATH = "default:_tenant:stripe"
CREATE = ("webhooks", "create", "--provider", "stripe", "--json")


@pytest.fixture
def configured(vault: Vault, shelf: Shelf, tmp_path: Path) -> Path:
    file = tmp_path / "oncekey.toml"
    file.write_text(
        f'[webhooks]\nsecrets = "vault"\n[webhooks.vault]\nurl = "{vault.url}"\n'
        'role_id_env = "ROLE_ID"\nsecret_id_env = "SECRET_ID"\n'
    )
    return file


@pytest.fixture
def run(oncekey: Run, configured: Path) -> Any:
    return lambda *words: oncekey(*words, ROLE_ID=ROLE_ID, SECRET_ID=SECRET_ID)


def test_a_secret_that_is_there_is_used(vault: Vault, run: Any, tmp_path: Path) -> None:
    vault.put(PATH, secret=["whsec_new", "whsec_old"])
    made = run(*CREATE)
    assert made.returncode == 0, made.stderr
    webhook = json.loads(made.stdout)
    assert "secret" not in webhook
    shown = json.loads(run("webhooks", "show", webhook["id"], "--json").stdout)
    assert shown["secrets"] == [{"created_at": None, "until": None}] * 2
    assert len(vault.entries[f"secret/{PATH}"]) == 1
    assert not (tmp_path / "oncekey-webhooks.key").exists()


def test_one_that_is_made_is_written_rotated_and_forgotten(vault: Vault, run: Any) -> None:
    made = json.loads(run(*CREATE).stdout)
    assert vault.at(PATH)["secret"] == made["secret"]
    assert run("webhooks", "rotate", made["id"], "--secret", "whsec_given_here").returncode == 0
    assert vault.at(PATH)["secret"] == ["whsec_given_here", made["secret"]]
    assert run("webhooks", "delete", made["id"]).returncode == 0
    assert vault.at(PATH)["secret"] == []


def test_a_vault_that_refuses_us_is_told_in_one_line(
    vault: Vault, oncekey: Run, configured: Path
) -> None:
    done = oncekey(*CREATE, ROLE_ID=ROLE_ID, SECRET_ID="s3cret-but-wrong")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {PATH}: the vault answered with an error")
    assert len(done.stderr.splitlines()) == 1
    assert "s3cret" not in done.stderr
    without = oncekey(*CREATE, ROLE_ID=ROLE_ID)
    assert "SECRET_ID, and it is not set" in without.stderr


def test_a_token_will_do(vault: Vault, oncekey: Run, configured: Path) -> None:
    configured.write_text("\n".join(configured.read_text().splitlines()[:4]))
    vault.put(PATH, secret="whsec_1")
    assert oncekey(*CREATE, VAULT_TOKEN=TOKEN).returncode == 0
