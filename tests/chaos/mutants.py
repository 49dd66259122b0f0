"""Bugs that are planted to see that the checker finds them: each is a copy of the product with a
few words changed, and the rules that it has to break."""

import shutil
from pathlib import Path
from typing import NamedTuple

from tests.chaos.run import Setting
from tests.chaos.site.server import ROOT


class Change(NamedTuple):
    """In `file` below the package, `old` becomes `new`."""

    file: str
    old: str
    new: str


class Mutant(NamedTuple):
    name: str
    changes: tuple[Change, ...]
    rules: frozenset[str]
    """One of them is enough: which comes first is a matter of luck."""
    jobs: tuple[str, ...]
    """Their kinds, or the places that requests are for."""
    troubles: tuple[str, ...] = ("kill",)
    store: str = "sqlite"
    seconds: float = 15.0

    @property
    def setting(self) -> Setting:
        """What it is broken by; `write` gives the source."""
        places = tuple(each for each in self.jobs if each.startswith("/"))
        kinds = ("request",) if places else self.jobs
        return Setting(
            self.store, self.seconds, self.name, kinds=kinds, places=places, deeds=self.troubles
        )

    def write(self, folder: Path) -> Path:
        """The product with the bug in it; raises when the words to change are not there."""
        source = folder / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        for file, old, new in self.changes:
            target = source / "oncekey" / file
            text = target.read_text()
            if old not in text:
                raise LookupError(f"{self.name}: {file} has no {old!r}")
            target.write_text(text.replace(old, new))
        return source


_DECIDE = "core/decision.py"
_LEDGER = "stores/sqlite/queries.sql"
_WORK = "stores/sqlite/work.sql"
# Answers those requests, and takes a while before it writes them down.
_EARLY = """\
            sent = True
            from oncekey.core.ports import Held
            early = [job for job in jobs if isinstance(job.request, {request})]
            deliver([(job.waiter, {answer}) for job in early])
            time.sleep(0.05 if early else 0)
            jobs = [each._replace(waiter=_NOBODY) if each in early else each for each in jobs]
"""

MUTANTS = (
    Mutant(
        "outcomes without a fence",
        (
            Change(_LEDGER, " AND c.fence = e.value ->> 1", ""),
            Change(_LEDGER, "c.id = :id AND c.fence = :fence", "c.id = :id"),
        ),
        frozenset({"one-answer", "no-answer-of-another", "backed-by-its-effect"}),
        ("/app/rerun", "/bank/rerun"),
        ("freeze",),
        seconds=90,
    ),
    Mutant(
        "outcomes without a fence on PostgreSQL",
        (
            Change(
                "stores/postgres/migrations/0001_ledger.sql",
                " AND c.fence = (r ->> 1)::BIGINT\n",
                "\n",
            ),
        ),
        frozenset({"one-answer", "no-answer-of-another", "backed-by-its-effect"}),
        ("/app/rerun", "/bank/rerun"),
        ("freeze",),
        "postgres",
        90,
    ),
    Mutant(
        "fingerprints are not compared",
        (
            Change(_DECIDE, "record.fingerprint != operation.fingerprint", "False"),
            Change(
                "core/ledger.py",
                "same = record.fingerprint == operation.fingerprint",
                "same = True",
            ),
        ),
        frozenset({"one-answer", "no-answer-of-another", "not-contradicted"}),
        ("request",),
    ),
    Mutant(
        "all others are taken for dead",
        (
            Change(
                "stores/requests.py", "Found(record, setting.is_gone(row))", "Found(record, True)"
            ),
        ),
        frozenset({"one-effect"}),
        ("request",),
        ("nap",),
    ),
    Mutant(
        "what must not be run again is run again",
        (Change(_DECIDE, "return Unknown(record)", "return TakeOver(record, ask=False)"),),
        frozenset({"one-effect"}),
        ("/app/refuse", "/bank/refuse"),
        ("kill", "kill-all"),
        seconds=30,
    ),
    Mutant(
        "keys of all owners are one",
        (Change("core/model.py", "joined = _head(*scope) +", 'joined = _head("", scope[1]) +'),),
        frozenset({"no-answer-of-another", "one-answer"}),
        ("request",),
        ("nap",),
    ),
    Mutant(
        "outcomes are told before they are on disk",
        (
            Change(
                "stores/writer.py",
                "            sent = True\n",
                _EARLY.format(request="Settle", answer="True"),
            ),
        ),
        frozenset({"one-answer", "one-operation", "not-contradicted"}),
        ("request",),
        ("kill", "kill-all"),
        seconds=30,
    ),
    Mutant(
        "claims are told before they are on disk",
        (
            Change(
                "stores/writer.py",
                "            sent = True\n",
                _EARLY.format(request="Insert", answer="Held(1)"),
            ),
        ),
        frozenset({"one-effect", "one-answer", "one-body"}),
        ("request",),
        ("kill",),
    ),
    Mutant(
        "nothing ever lapses",
        (
            Change(
                _DECIDE,
                "    settled = record.outcome is not None\n",
                "    settled = record.outcome is not None\n    lapsed = False\n",
            ),
        ),
        frozenset({"nobody-stuck"}),
        ("request",),
    ),
    Mutant(
        "a success is given back like a failure",
        (Change("core/finality.py", "return status not in _MENDABLE", "return status == 404"),),
        frozenset({"one-effect", "one-answer", "not-contradicted"}),
        ("request",),
        ("nap",),
    ),
    Mutant(
        "replays do not say so",
        (Change("wire/headers.py", '(REPLAYED, b"true")', '(REPLAYED, b"false")'),),
        frozenset({"marked-as-replays"}),
        ("request",),
        ("nap",),
    ),
    Mutant(
        "effect and outcome commit apart",
        (
            Change(
                "core/claim.py", "done = yield inside(transaction, settle)", "done = yield settle"
            ),
        ),
        frozenset({"backed-by-its-effect", "one-effect", "one-answer"}),
        ("/app/within",),
        ("kill", "kill-all"),
        "postgres",
        30,
    ),
    Mutant(
        "the last resolution wins",
        (
            Change(
                _WORK,
                "WHERE id = :id AND state = 0\nRETURNING id\n\n-- name: park",
                "WHERE id = :id\nRETURNING id\n\n-- name: park",
            ),
        ),
        frozenset({"one-winner", "one-result"}),
        ("order",),
        ("nap",),
    ),
    Mutant(
        "what was parked is forgotten",
        (
            Change(
                "stores/work/promises.py",
                "        if expires_at > insert.created_at:",
                "        if False:",
            ),
        ),
        frozenset({"accepted-is-delivered", "nobody-stuck", "one-winner"}),
        ("order",),
        ("nap",),
    ),
    Mutant(
        "signatures are not looked at",
        (
            Change(
                "webhooks/providers/github.py",
                "signing.check([given], delivery.body, signing.keys_of(secrets), encode=_written)",
                "",
            ),
        ),
        frozenset({"forgeries-refused"}),
        ("order", "forward"),
        ("nap",),
    ),
    Mutant(
        "deliveries are not known again",
        (
            Change(
                "webhooks/naming.py",
                "    return Operation(Ref(scope_of(source), key), retention",
                "    import secrets\n    key += secrets.token_hex(4)\n"
                "    return Operation(Ref(scope_of(source), key), retention",
            ),
            Change(
                "webhooks/naming.py",
                "return Operation(ref, name_digest(key),",
                "return Operation(ref._replace(key=key), name_digest(key),",
            ),
        ),
        frozenset({"one-effect", "only-what-was-asked", "one-answer"}),
        ("forward",),
        ("nap",),
    ),
    Mutant(
        "finished steps are not journaled",
        (
            Change(
                "durable/embedded/run.py",
                "        self._entries.append(entry)\n",
                '        if entry.name != "charge":\n            self._entries.append(entry)\n',
            ),
        ),
        frozenset(
            {"finished-steps-stay-finished", "journal-never-changes", "accepted-is-delivered"}
        ),
        ("order",),
        ("kill",),
    ),
    Mutant(
        "starts forget their key",
        (
            Change(
                "durable/embedded/starting.py",
                "        if key is not None:\n            fingerprint",
                "        if False:\n            fingerprint",
            ),
        ),
        frozenset({"started-once"}),
        ("order",),
        ("nap",),
    ),
    Mutant(
        "control forgets who asked",
        (
            Change("stores/work/control.py", "    if seen:\n", "    if False:\n"),
            Change(
                _WORK,
                "-- name: keep_control\nINSERT INTO",
                "-- name: keep_control\nINSERT OR REPLACE INTO",
            ),
        ),
        frozenset({"controlled-once"}),
        ("fork", "cancel"),
        ("nap",),
    ),
    Mutant(
        "tenants see each other's workflows",
        (
            Change(
                _WORK,
                "WHERE id = :id AND (:tenant IS NULL OR tenant = :tenant)",
                "WHERE id = :id AND :tenant IS :tenant",
            ),
        ),
        frozenset({"strangers-see-nothing"}),
        ("order",),
        ("nap",),
    ),
)
