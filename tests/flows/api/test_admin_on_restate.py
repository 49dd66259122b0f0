"""What admins see of durable work and deliveries, with the ledger in Restate."""

import pytest

from tests.flows.api.test_admin_deliveries import (  # noqa: F401 - tests of this file
    admin,
    test_a_delivery_leads_to_a_workflow_or_an_event,
    test_a_delivery_leads_to_the_promise_and_who_waits_for_it,
    test_deliveries_are_found_by_everything_that_is_known_of_them,
    test_one_that_nobody_waits_for_tells_its_key_and_leads_on_later,
)
from tests.flows.api.test_admin_promises import (  # noqa: F401
    test_a_promise_tells_who_waits_and_who_settled_it,
    test_an_admin_publishes_once,
    test_an_admin_resolves_once_and_the_workflow_goes_on,
    test_events_of_all_tenants_are_listed,
    test_promises_are_found_by_their_key,
)
from tests.flows.api.test_admin_work import (  # noqa: F401
    test_a_call_and_a_retry_are_waited_for,
    test_a_timeline_has_every_kind_of_step,
    test_every_step_of_a_timeline_can_be_forked_from,
    test_one_tells_of_its_key_and_its_forks,
    test_one_that_runs_tells_of_its_process,
    test_work_is_found_by_the_key_it_was_started_with,
    test_work_of_any_status_is_listed,
)

pytestmark = [pytest.mark.anyio, pytest.mark.restate]


@pytest.fixture
def store_url(restate_url: str) -> str:
    return restate_url
