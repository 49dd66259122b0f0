"""Words of the console: texts of the API as people read them, and as nothing but text."""

import pytest

from oncekey.console.chain import unnamed
from oncekey.console.rendering import coded, wrapped
from oncekey.console.wording import narrows, sentence_of, spelled


@pytest.mark.parametrize(
    "given, shown",
    [
        ("what is over cannot be cancelled", "What is over cannot be cancelled."),
        ("Nothing was done.", "Nothing was done."),
        ("Why?", "Why?"),
        ("wf_01 is over", "wf_01 is over."),
    ],
)
def test_a_sentence_ends(given: str, shown: str) -> None:
    assert sentence_of(given) == shown


def test_times_inside_of_a_text_are_spelled() -> None:
    told = spelled("kept for it until 2026-11-17T20:21:53.197Z, or 2026-11-17T22:21:53+02:00")
    assert told == "kept for it until 2026-11-17 20:21:53, or 2026-11-17 20:21:53"


@pytest.mark.parametrize("text", ["2026-99-99T99:99:99Z", "0001-01-01T00:00:00+23:59"])
def test_what_only_looks_like_a_time_stays_as_it_is(text: str) -> None:
    assert spelled(f"kept for {text}") == f"kept for {text}"


def test_commands_are_code_and_nothing_else_is() -> None:
    assert coded("run `oncekey x` & <b>`<i>`") == (
        "run <code>oncekey x</code> &amp; &lt;b&gt;<code>&lt;i&gt;</code>"
    )
    assert coded("one ` alone") == "one ` alone"


def test_a_namespace_is_broken_after_its_colons() -> None:
    assert wrapped("t-<b>:_tenant:x") == "t-&lt;b&gt;:<wbr>_tenant:<wbr>x"


def test_what_is_said_after_an_action_narrows_no_list() -> None:
    assert not narrows({"said": "purged", "again": "1", "tenant": ""})
    assert narrows({"tenant": "acme"})


@pytest.mark.parametrize(
    "reason, name",
    [
        ("signature-invalid: there is no header", "whose identifier is not believed"),
        ("identifier-missing: none", "without an identifier"),
    ],
)
def test_a_delivery_without_a_name_is_called_by_why(reason: str, name: str) -> None:
    assert unnamed({"reason": reason}) == name
