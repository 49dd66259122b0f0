"""What the tests of examples share."""

from tests.fixtures.followed import example

__all__ = ["example"]
