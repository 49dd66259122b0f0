"""Two of three nodes are gone, and each port still says that it is well: who asks OnceKey is told
the truth."""

import httpx
import pytest

from tests.fixtures.command import Run
from tests.fixtures.ports import lasting_port
from tests.fixtures.restate_server import RestateCluster
from tests.fixtures.served import Serve

pytestmark = [pytest.mark.restate, pytest.mark.timeout(300)]


def test_a_lost_quorum_is_told_by_readyz_and_by_check(
    serve: Serve, oncekey: Run, restate_cluster: RestateCluster
) -> None:
    url = restate_cluster.url(endpoint=f"http://127.0.0.1:{lasting_port()}")
    served = serve(ONCEKEY_SERVER__API="true", ONCEKEY_STORE__URL=url)
    assert httpx.get(f"{served.url}/readyz", timeout=60).status_code == 200
    assert oncekey("check", "--url", url).returncode == 0

    for node in restate_cluster.nodes[:2]:
        node.kill()
    left = restate_cluster.nodes[2]
    assert httpx.get(f"{left.ingress}/restate/health").status_code == 200

    # Calls that were under way already may still be answered.
    while (ready := httpx.get(f"{served.url}/readyz", timeout=60)).status_code == 200:
        continue
    assert ready.json()["type"].endswith("/ledger-unavailable")
    assert httpx.get(f"{served.url}/healthz").status_code == 200
    checked = oncekey("check", "--url", url)
    assert checked.returncode == 1
    assert checked.stderr.splitlines()[-1] == (
        "error: Restate answers, and carries nothing out: a partition has no leader; are enough "
        "of its nodes running?"
    )

    restate_cluster.start()
    while httpx.get(f"{served.url}/readyz", timeout=60).status_code != 200:
        continue


def test_readyz_is_bounded_when_restate_is_gone(
    serve: Serve, restate_cluster: RestateCluster
) -> None:
    url = restate_cluster.url(endpoint=f"http://127.0.0.1:{lasting_port()}")
    restate_cluster.start()
    served = serve(ONCEKEY_SERVER__API="true", ONCEKEY_STORE__URL=url)
    restate_cluster.kill()
    away = httpx.get(f"{served.url}/readyz", timeout=60)
    assert (away.status_code, away.headers["retry-after"]) == (503, "1")
    restate_cluster.start()
    while httpx.get(f"{served.url}/readyz", timeout=60).status_code != 200:
        continue
