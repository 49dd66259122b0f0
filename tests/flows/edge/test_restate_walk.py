"""A request through Restate: asked of the service behind once, and answered as ever."""

import pytest

from tests.fixtures.edge_site import EdgeSite

pytestmark = pytest.mark.restate


def test_a_request_is_answered_and_replayed(restate_site: EdgeSite) -> None:
    first = restate_site.post(key="k-1")
    again = restate_site.post(key="k-1")
    assert (first.status_code, first.content) == (again.status_code, again.content)
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert len(restate_site.behind.seen) == 1
