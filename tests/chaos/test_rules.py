"""Each rule with the least history that breaks it, and one beside it that is as it should be."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.chaos.check import RULES, check, name_of
from tests.chaos.history import Answered, Effect, Ended, Event, GaveUp, Left, Lost, Sent, Trouble


class Told:
    """A history of job 1, written down line by line; each line is a second after the last."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.at = 100.0
        self._call = 0

    def call(
        self, place: str, status: int = 201, told: Any = None, *, body: str = "a", who: str = "",
        key: str = "k", problem: str = "", replayed: bool = False, operation: str = "op_1",
    ) -> "Told":  # fmt: skip
        """Somebody asks, and is told that."""
        self._call += 1
        self._add(Sent(self._now(), self._call, 1, place, who, key, body, "s1"))
        text = json.dumps(told)
        self._add(Answered(self._now(), self._call, 1, status, problem, replayed, operation, text))
        return self

    def lost(self, place: str, key: str = "k") -> "Told":
        self._call += 1
        self._add(Sent(self._now(), self._call, 1, place, "", key, "a", "s1"))
        self._add(Lost(self._now(), self._call, 1, "no answer"))
        return self

    def does(
        self, mark: str, place: str = "/app/rerun", key: str = "k", *, body: str = "a",
        who: str = "", server: str = "s1", saw: str = "",
    ) -> "Told":  # fmt: skip
        self._add(Effect(self._now(), 1, place, who, key, body, mark, server, saw))
        return self

    def step(self, key: str, mark: str, saw: str = "", server: str = "s1") -> "Told":
        return self.does(mark, "step", key, body="", who="acme", server=server, saw=saw)

    def trouble(self, what: str, server: str = "s1") -> "Told":
        self._add(Trouble(self._now(), self._now(), what, server))
        return self

    def saw(self, status: str, *, who: str = "acme", id_: str = "wf_1", **told: Any) -> "Told":
        seen = {"id": id_, "name": "order", "status": status, "forked_from": None, **told}
        return self.call("see", 200, seen, body="", who=who, key=id_)

    def add(self, event: Callable[[float], Event]) -> "Told":
        self._add(event(self._now()))
        return self

    def _add(self, event: Event) -> None:
        self.events.append(event)

    def _now(self) -> float:
        self.at += 1
        return self.at


M, N = {"mark": "m"}, {"mark": "n"}
REUSED, UNKNOWN = "idempotency-key-reused", "outcome-unknown"


def resolution(number: int, status: int = 200, *, lost: bool = False) -> dict[str, Any]:
    told = {"told": {"already_resolved": lost}, "status": status}
    return {**told, "body": json.dumps(f"r{number}"), "who": "acme", "key": f"r{number}"}


BROKEN = {
    "one-answer": Told().does("m").call("/app/rerun", told=M).call("/app/rerun", told=N),
    "one-operation": Told().does("m").call("/app/rerun", told=M)
    .call("/app/rerun", told=M, replayed=True, operation="op_2"),
    "not-contradicted": Told().does("m").call("/app/refuse", told=M)
    .call("/app/refuse", 409, problem=UNKNOWN),
    "backed-by-its-effect": Told().call("/app/rerun", told=M),
    "no-answer-of-another": Told().does("m", "/bank/rerun", who="acme/shop/ben")
    .call("/bank/rerun", told=M, who="acme/shop/anna"),
    "marked-as-replays": Told().does("m").call("/app/rerun", told=M).call("/app/rerun", told=M),
    "expected-answers": Told().call("/app/rerun", 503, problem="ledger-unavailable"),
    "forgeries-refused": Told().call("hook", 200, {"status": "parked"}, body="forged"),
    "one-effect": Told().call("/app/rerun", told=N).does("m").does("n"),
    "one-body": Told().does("m").trouble("kill").does("n", body="b"),
    "only-what-was-asked": Told().does("m", "/bank/rerun", who="globex/shop/anna"),
    "finished-steps-stay-finished": Told().step("wf_1:a", "m").step("wf_1:b", "n", "m")
    .trouble("kill").step("wf_1:a", "o"),
    "steps-repeat-for-a-reason": Told().step("wf_1:a", "m").step("wf_1:a", "n", server="s2"),
    "journal-never-changes": Told().step("wf_1:b", "m", "x").trouble("kill")
    .step("wf_1:b", "n", "y"),
    "started-once": Told().call("start:order", told={"id": "wf_1"})
    .call("start:order", told={"id": "wf_2"}),
    "one-result": Told().saw("succeeded", result={"marks": []})
    .saw("failed"),
    "one-winner": Told().call("resolve", **resolution(1)).call("resolve", **resolution(2)),
    "accepted-is-delivered": Told().call("resolve", **resolution(1, 202)).saw("waiting"),
    "results-are-journaled": Told().saw("succeeded", result={"marks": ["m"]}),
    "controlled-once": Told()
    .call("fork", 200, {"workflow_id": "wf_2", "idempotency_replayed": False})
    .call("fork", 200, {"workflow_id": "wf_3", "idempotency_replayed": True}),
    "cancelled-stays-cancelled": Told()
    .call("cancel", 200, {"workflow_id": "wf_1", "idempotency_replayed": False}).saw("running"),
    "forks-build-on-what-was-done": Told().step("wf_1:one", "m").step("wf_2:one", "n")
    .saw("succeeded", result={"marks": ["m"]})
    .saw("succeeded", id_="wf_2", result={"marks": ["n"]}, forked_from="wf_1"),
    "strangers-see-nothing": Told().saw("waiting", who="globex"),
    "nobody-stuck": Told().add(lambda at: GaveUp(at, 1, "/app/rerun", "", "k")),
    "servers-live": Told().add(lambda at: Ended(at, "s1", "a traceback")),
}  # fmt: skip

SOUND = {
    "one-answer": Told().does("m").call("/app/rerun", told=M)
    .call("/app/rerun", told=M, replayed=True).call("/app/rerun", 422, body="b", problem=REUSED),
    "one-operation": Told().does("m").call("/app/rerun", told=M)
    .call("/app/rerun", 422, body="b", problem=REUSED, operation=""),
    "not-contradicted": Told().call("/app/refuse", 409, problem=UNKNOWN)
    .does("m", "/app/refuse").call("/app/refuse", told=M),
    "no-answer-of-another": Told().does("m", "/bank/rerun", who="acme/shop/anna")
    .call("/bank/rerun", told=M, who="acme/shop/anna"),
    "expected-answers": Told().trouble("store", "")
    .call("/app/rerun", 503, problem="ledger-unavailable").call("/app/rerun", 500, {"fails": 1}),
    "forgeries-refused": Told().call("hook", 401, body="forged", problem="signature-invalid"),
    "one-effect": Told().lost("/app/rerun").does("m").trouble("kill").does("n")
    .call("/app/rerun", told=N),
    "one-effect of a zombie": Told().lost("/app/rerun").trouble("freeze", "s2").does("m")
    .does("n", server="s2").call("/app/rerun", told=M),
    "one-effect, recovered": Told().lost("/app/recover").does("m", "/app/recover")
    .trouble("freeze").does("n", "/app/recover", server="s2"),
    "steps": Told().step("wf_1:a", "m").trouble("kill").step("wf_1:a", "n", server="s2")
    .step("wf_1:b", "o", "n", server="s2").saw("succeeded", result={"marks": ["n", "o"]}),
    "a zombie": Told().step("wf_1:a", "m").trouble("freeze").step("wf_1:a", "n", server="s2")
    .step("wf_1:b", "o", "n", server="s2").step("wf_1:a", "p"),
    "started-once": Told().call("start:order", told={"id": "wf_1"})
    .call("start:order", 200, {"id": "wf_1"}),
    "one-winner": Told().call("resolve", **resolution(1, 202))
    .call("resolve", **resolution(2, 202)).call("resolve", **resolution(1))
    .call("resolve", **resolution(2, lost=True))
    .saw("succeeded", result={"told": "r1", "marks": []}),
    "controlled-once": Told()
    .call("fork", 200, {"workflow_id": "wf_2", "idempotency_replayed": False})
    .call("fork", 409, problem="request-in-progress")
    .call("fork", 200, {"workflow_id": "wf_2", "idempotency_replayed": True}),
    "strangers-see-nothing": Told().call("see", 404, who="globex", problem="not-found"),
    "servers-live": Told().trouble("store", "").add(lambda at: Ended(at, "s1", "no database")),
}  # fmt: skip

# Excuses that do not count: what happened to another server, or what no claim depends on.
NO_EXCUSE = {
    "another was killed": Told().lost("/app/rerun").does("m").trouble("kill", "s2").does("n"),
    "a clock was set": Told().lost("/app/rerun").does("m").trouble("jump").does("n"),
    "a caller was cut off": Told().lost("/app/rerun").does("m").trouble("caller-line").does("n"),
    "a nap": Told().lost("/app/rerun").does("m").trouble("nap").does("n"),
    "at most once": Told().lost("/app/refuse").does("m", "/app/refuse").trouble("kill")
    .does("n", "/app/refuse"),
    "in one transaction": Told().lost("/app/within").does("m", "/app/within").trouble("freeze")
    .does("n", "/app/within"),
    "a kill, where the application is asked": Told().lost("/app/recover")
    .does("m", "/app/recover").trouble("kill").does("n", "/app/recover"),
}  # fmt: skip


def broken(told: Told) -> set[str]:
    return {violation.rule for violation in check(told.events)}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_promise_is_found(rule: str) -> None:
    assert rule in broken(BROKEN[rule])


@pytest.mark.parametrize("name", SOUND)
def test_nothing_is_found_where_nothing_is_broken(name: str) -> None:
    assert broken(SOUND[name]) == set()


@pytest.mark.parametrize("name", NO_EXCUSE)
def test_an_effect_is_not_excused_by_what_has_nothing_to_do_with_it(name: str) -> None:
    assert "one-effect" in broken(NO_EXCUSE[name])


def test_every_rule_is_broken_here() -> None:
    assert set(BROKEN) == {name_of(rule) for rule in RULES}


def test_what_is_left_over_is_told() -> None:
    told = Told().add(lambda at: Left(at, "order wf_1 is paused", 1))
    assert [v.told for v in check(told.events)] == ["order wf_1 is paused"]
