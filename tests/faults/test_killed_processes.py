"""A serving process is killed at every named point; whoever retries finds what was promised."""

import pytest

import oncekey
from oncekey import Ref, Scope
from tests.fixtures.caller import Answer
from tests.fixtures.street import Server, Street

# The points of one request in their order. A group is committed twice: the claim, then the outcome.
UNSETTLED = [
    "group-taken 1", "group-committed 1", "after-claim", "in-handler", "after-effect",
    "before-settle", "group-taken 2",
]  # fmt: skip
SETTLED = ["group-committed 2", "after-settle", "answered"]
UNSETTLED_WITHIN = [
    "group-taken 1", "group-committed 1", "after-claim", "in-handler", "in-transaction",
    "before-settle", "after-settle", "before-commit",
]  # fmt: skip
SETTLED_WITHIN = ["after-commit", "after-effect", "answered"]
# Points between the effect and the outcome.
IN_DOUBT = {"after-effect", "before-settle", "group-taken 2"}
# Who is asked next: a process started after the death, or one that was there all the time.
WITNESSES = ["restarted", "survivor"]

seen_by = pytest.mark.parametrize("witness", WITNESSES)


class Crash:
    """One call of one key, whose process is killed at a point; and the calls after it."""

    def __init__(self, street: Street, doomed: Server, path: str, point: str) -> None:
        self.street = street
        self.path = path
        self.point = point
        self.key = "at-" + point.replace(" ", "-")
        name, _, count = point.partition(" ")
        street.arm(name, int(count or 1))
        self._told = doomed.call(path, self.key)
        assert not street.armed, f"the process never came to {point}"
        assert doomed.join() == -9

    def retry(self, server: Server) -> Answer:
        """Three more calls. Every complete answer, also the one of the dead, is the same."""
        answers = [server.ask(self.path, self.key) for _ in range(3)]
        first = self._told or answers[0]
        for answer in answers:
            assert (answer.status, answer.problem) == (first.status, first.problem)
            assert answer.problem or answer.body == first.body
            assert answer.header("x-operation-id") == first.header("x-operation-id")
        return first

    @property
    def executions(self) -> list[str]:
        return self.street.effects(self.key)

    def purge(self) -> None:
        ledger = oncekey.open(self.street.url)
        assert ledger.purge(Ref(Scope(oncekey.namespace_of(), f"POST {self.path}"), self.key))
        ledger.close()


class Scene:
    """Crash after crash on one street, and who is asked after each."""

    def __init__(self, street: Street, witness: str, path: str) -> None:
        self._street = street
        self._path = path
        self._survivor = street.open() if witness == "survivor" else None
        self._doomed = street.open()

    def crash(self, point: str) -> tuple[Crash, Server]:
        crash = Crash(self._street, self._doomed, self._path, point)
        self._doomed = self._street.open()
        return crash, self._survivor or self._doomed


def check_rerun(street: Street, witness: str, subtests: pytest.Subtests) -> None:
    scene = Scene(street, witness, "/rerun")
    for point in UNSETTLED + SETTLED:
        with subtests.test(point=point):
            crash, server = scene.crash(point)
            answer = crash.retry(server)
            assert answer.status == 201
            assert crash.executions[-1] == answer.json["execution"]
            # A crash costs one extra effect at most, and none once the outcome was committed.
            assert len(crash.executions) == (2 if point in IN_DOUBT else 1)


def check_refuse(street: Street, witness: str, subtests: pytest.Subtests) -> None:
    scene = Scene(street, witness, "/refuse")
    # A claim that was not committed was never there: nothing is unknown about it.
    for point in UNSETTLED[1:]:
        with subtests.test(point=point):
            crash, server = scene.crash(point)
            assert crash.retry(server).problem == "outcome-unknown"
            before = crash.executions
            assert len(before) == (1 if point in IN_DOUBT else 0)
            crash.purge()
            assert server.ask("/refuse", crash.key).status == 201
            assert len(crash.executions) == len(before) + 1
    for point in SETTLED:
        with subtests.test(point=point):
            crash, server = scene.crash(point)
            assert crash.executions == [crash.retry(server).json["execution"]]


def check_recover(street: Street, witness: str, subtests: pytest.Subtests) -> None:
    check_exactly_once(Scene(street, witness, "/recover"), UNSETTLED + SETTLED, subtests)


def check_within(street: Street, witness: str, subtests: pytest.Subtests) -> None:
    points = UNSETTLED_WITHIN + SETTLED_WITHIN
    check_exactly_once(Scene(street, witness, "/within"), points, subtests)


def check_exactly_once(scene: Scene, points: list[str], subtests: pytest.Subtests) -> None:
    for point in points:
        with subtests.test(point=point):
            crash, server = scene.crash(point)
            answer = crash.retry(server)
            assert crash.executions == [answer.json["execution"]]


@seen_by
def test_rerun_repeats_at_most_what_was_not_committed(
    street: Street, witness: str, subtests: pytest.Subtests
) -> None:
    check_rerun(street, witness, subtests)


@seen_by
def test_refuse_never_repeats_and_says_so_until_purged(
    street: Street, witness: str, subtests: pytest.Subtests
) -> None:
    check_refuse(street, witness, subtests)


@seen_by
def test_recover_asks_the_application_what_happened(
    street: Street, witness: str, subtests: pytest.Subtests
) -> None:
    check_recover(street, witness, subtests)


def test_an_application_that_cannot_tell_is_believed(
    street: Street, subtests: pytest.Subtests
) -> None:
    scene = Scene(street, "restarted", "/lost")
    for point in UNSETTLED[1:]:
        with subtests.test(point=point):
            crash, server = scene.crash(point)
            before = crash.executions
            assert crash.retry(server).problem == "outcome-unknown"
            assert crash.executions == before


@seen_by
def test_an_effect_in_the_ledgers_transaction_happens_exactly_once(
    street: Street, witness: str, subtests: pytest.Subtests
) -> None:
    check_within(street, witness, subtests)


@pytest.mark.postgres
def test_rerun_on_postgres(postgres_street: Street, subtests: pytest.Subtests) -> None:
    check_rerun(postgres_street, "survivor", subtests)


@pytest.mark.postgres
def test_refuse_on_postgres(postgres_street: Street, subtests: pytest.Subtests) -> None:
    check_refuse(postgres_street, "restarted", subtests)


@pytest.mark.postgres
def test_recover_on_postgres(postgres_street: Street, subtests: pytest.Subtests) -> None:
    check_recover(postgres_street, "survivor", subtests)


@pytest.mark.postgres
def test_exactly_once_on_postgres(postgres_street: Street, subtests: pytest.Subtests) -> None:
    check_within(postgres_street, "restarted", subtests)


@pytest.mark.restate
def test_rerun_on_restate(restate_street: Street, subtests: pytest.Subtests) -> None:
    check_rerun(restate_street, "survivor", subtests)


@pytest.mark.restate
def test_refuse_on_restate(restate_street: Street, subtests: pytest.Subtests) -> None:
    check_refuse(restate_street, "restarted", subtests)


@pytest.mark.restate
def test_recover_on_restate(restate_street: Street, subtests: pytest.Subtests) -> None:
    check_recover(restate_street, "survivor", subtests)
