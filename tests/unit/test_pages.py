"""Pages of a list: bounded by number and by bytes, and none is lost between two of them."""

import msgspec

from oncekey.api.pages import LARGEST_ANSWER, page_of


def pages(sizes: list[int], limit: int) -> list[list[int]]:
    """Follow the cursor from page to page; each thing is its place and so many characters."""
    found, seen, after = list(enumerate(sizes)), [], -1
    while True:
        left = [each for each in found if each[0] > after][: limit + 1]
        answer = page_of(
            "things",
            "next_after",
            left,
            limit,
            lambda each: {"place": each[0], "text": "x" * each[1]},
            lambda each: each[0],
        )
        page = msgspec.json.decode(answer.body)
        seen.append([each["place"] for each in page["things"]])
        if page["next_after"] is None:
            return seen
        after = page["next_after"]


def test_a_page_holds_as_many_as_asked_for() -> None:
    assert pages([1] * 5, 2) == [[0, 1], [2, 3], [4]]
    assert pages([1] * 4, 2) == [[0, 1], [2, 3]]
    assert pages([], 2) == [[]]


def test_a_page_ends_early_when_it_would_be_too_large() -> None:
    third = LARGEST_ANSWER // 3
    assert pages([third] * 5, 10) == [[0, 1], [2, 3], [4]]


def test_one_is_shown_however_large_it_is() -> None:
    assert pages([LARGEST_ANSWER + 1, 1, LARGEST_ANSWER + 1], 10) == [[0], [1], [2]]
