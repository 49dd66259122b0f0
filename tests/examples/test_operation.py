"""The examples of who calls, what is seen and who shares, as their READMEs tell them."""

import json
import re

import pytest

from tests.fixtures.followed import Follow


@pytest.mark.postgres
def test_postgresql(example: Follow, postgres_url: str) -> None:
    ran = example("postgresql", ONCEKEY_STORE__URL=postgres_url).follow()
    _, migrated, _, _, at_once, later, orders, keys = ran

    assert migrated.code == 0
    answers = set(re.findall(r"tea is ordered, by process \d+", at_once.output))
    assert len(answers) == 1
    assert later.output.splitlines() == [*answers] * 4
    assert orders.output == "tea\n"
    assert "tea-1" in keys.output


def test_identity(example: Follow) -> None:
    _, _, _, _, first, _, again, _, other, forged = example("identity").follow()

    def keys(body: str) -> list[str]:
        return [value for name, value in json.loads(body)["headers"] if name == "idempotency-key"]

    assert keys(first.answer.body) == ["t-acme:_tenant:user:anna:tea-1"]
    assert again.answer.body == first.answer.body
    assert again.answer.headers["idempotent-replayed"] == "true"
    assert keys(other.answer.body) == ["t-globex:_tenant:user:bob:tea-1"]
    assert forged.answer.status == 401


def test_declared_provider(example: Follow) -> None:
    followed = example("declared-provider")
    *_, first, again, forged, log, listed = followed.follow()

    assert (first.answer.status, again.answer.status, forged.answer.status) == (200, 200, 401)
    assert again.answer.headers["idempotent-replayed"] == "true"
    verdicts = [line.split()[2] for line in log.output.splitlines()[-3:]]
    assert verdicts == ["refused", "replayed", "accepted"]
    (workflow,) = set(re.findall(r"wf_\w+", listed.output))
    followed.type(f"oncekey workflows show {workflow} --wait 30s")
    assert followed.read("parcels.txt") == "parcel 7\n"


def test_observe(example: Follow) -> None:
    followed = example("observe")
    _, _, first, again, other, _, _, metrics, alerts, dashboard = followed.follow()

    statuses = [each.answer.status for each in (first, again, other)]
    assert statuses == [201, 201, 422]
    counted = {
        re.search(r'way="(\w+)"', line)[1]: float(line.split()[-1])  # type: ignore[index]
        for line in metrics.output.splitlines()
        if "seconds_count" in line
    }
    assert counted == {"new": 1, "replay": 1, "mismatch": 1}
    assert "idempotency_key_collision_total" in metrics.output
    assert (alerts.code, dashboard.code) == (0, 0)
    assert "OnceKeyStuckClaims" in followed.read("oncekey.rules.yml")
    assert json.loads(followed.read("dashboard.json"))["panels"]
    ways = re.findall(r'"way": ?"(\w+)"', followed.alone[0].said)
    assert ways[:3] == ["new", "replay", "mismatch"]
