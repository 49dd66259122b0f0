"""Keys that seal secrets: from a variable, or from a file that nobody else can read."""

import os
import stat
from base64 import b64decode, b64encode, urlsafe_b64encode
from pathlib import Path

import pytest

from oncekey.core.errors import ConfigurationError
from oncekey.webhooks.keys import keys_in_file, keys_in_variable, make_key_file, new_key

ONE, TWO = bytes(range(32)), b"\xfb" * 32


def text_of(key: bytes) -> str:
    return b64encode(key).decode()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "webhooks.key"
    path.touch(mode=0o600)
    return path


def test_a_new_key_is_32_random_bytes() -> None:
    assert len(b64decode(new_key())) == 32
    assert new_key() != new_key()


@pytest.mark.parametrize(
    "value, keys",
    [
        ("", ()),
        (text_of(ONE), (ONE,)),
        (f" {text_of(TWO)}, {text_of(ONE)}\n", (TWO, ONE)),
        (urlsafe_b64encode(TWO).decode(), (TWO,)),
    ],
)
def test_a_variable_has_keys_newest_first(value: str, keys: tuple[bytes, ...]) -> None:
    assert keys_in_variable("KEY", {"KEY": value}) == keys


def test_a_variable_that_is_not_set_has_none() -> None:
    assert keys_in_variable("KEY", {}) == ()


@pytest.mark.parametrize("value", ["secret", text_of(b"k" * 31), text_of(ONE)[:-1], "é" * 44])
def test_what_is_no_key_is_refused_and_not_told(value: str) -> None:
    with pytest.raises(ConfigurationError, match="the variable KEY must hold 32 bytes") as caught:
        keys_in_variable("KEY", {"KEY": value})
    assert value not in str(caught.value)
    assert "oncekey webhooks key" in str(caught.value)


def test_a_file_has_keys_and_comments(file: Path) -> None:
    file.write_text(f"# the newest\n{text_of(TWO)} # of May\n\n{text_of(ONE)}\n")
    assert keys_in_file(file) == (TWO, ONE)


def test_a_file_that_is_not_there_has_none(tmp_path: Path) -> None:
    assert keys_in_file(tmp_path / "none") == ()


def test_a_file_without_a_key_is_refused(file: Path) -> None:
    with pytest.raises(ConfigurationError, match="has no key in it"):
        keys_in_file(file)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o777])
def test_a_file_that_others_can_reach_is_refused(file: Path, mode: int) -> None:
    file.write_text(text_of(ONE))
    file.chmod(mode)
    with pytest.raises(ConfigurationError, match=f"mode {mode:o}.*chmod 600") as caught:
        keys_in_file(file)
    assert text_of(ONE) not in str(caught.value)


def test_a_file_that_only_its_owner_reads_is_good(file: Path) -> None:
    file.write_text(text_of(ONE))
    file.chmod(0o400)
    assert keys_in_file(file) == (ONE,)


def test_a_file_of_another_account_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text(text_of(ONE))
    owner = file.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(ConfigurationError, match=f"belongs to the account {owner}.*chown"):
        keys_in_file(file)


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "k"
    path.mkdir() if kind == "folder" else os.mkfifo(path)
    with pytest.raises(ConfigurationError, match="is not a file"):
        keys_in_file(path)


def test_a_file_is_made_for_this_account_alone(tmp_path: Path) -> None:
    path = tmp_path / "webhooks.key"
    before = os.umask(0)
    try:
        make_key_file(path)
    finally:
        os.umask(before)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(keys_in_file(path)) == 1
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_there_is_never_made_anew(file: Path) -> None:
    file.write_text(text_of(ONE))
    make_key_file(file)
    assert keys_in_file(file) == (ONE,)


def test_a_file_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be made"):
        make_key_file(tmp_path / "no" / "folder")
