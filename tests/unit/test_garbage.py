"""A server looks for garbage seldom, and finds it all the same."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from oncekey.cli.garbage import collect_seldom

# Many times what may lie about before anybody looks.
ENOUGH = 1_000_000


class Circle:
    """Refers to itself, so that only a search frees it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


def test_what_was_built_before_is_not_looked_at_again() -> None:
    built = Circle()
    collect_seldom()
    assert not any(each is built for each in gc.get_objects())


def test_what_comes_later_is_freed() -> None:
    collect_seldom()
    first = weakref.ref(Circle())
    made = 0
    while first() is not None and made < ENOUGH:
        Circle()
        made += 1
    assert first() is None
    # Not at the first opportunity: requests under way have more objects than that.
    assert made > 700
