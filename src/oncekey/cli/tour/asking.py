"""Requests of the tour: each is shown as a line of curl, sent, and counted by what came back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import httpx

from oncekey.cli.text import escaped
from oncekey.cli.tour.patience import SECONDS, Patience
from oncekey.cli.tour.teller import Teller

_TOLD = ("Idempotent-Replayed", "Retry-After", "X-Operation-Id")
_SIGNATURE = "Stripe-Signature"
WORKFLOWS = "/api/tenants/default/workflows"
# Of a workflow, what matters here.
_MEMBERS = ("id", "status", "result", "error")
_ENDED = {"succeeded", "failed", "cancelled", "paused"}
Body = Mapping[str, Any] | bytes


class Client:
    """Knows the server by its address, which is another one after each start."""

    def __init__(self, teller: Teller, patience: Patience, secret: str) -> None:
        self._teller = teller
        self._patience = patience
        self._secret = secret
        self.url = ""
        self.counts: Counter[str] = Counter()

    def post(
        self, path: str, body: Body, *, key: str | None = None, signature: str | None = None
    ) -> httpx.Response:
        """Shown, sent, and its answer shown."""
        self.show(path, body, key=key, signature=signature)
        answer = self.send(path, body, key=key, signature=signature)
        self.show_answer(answer)
        return answer

    def show(
        self,
        path: str,
        body: Body | None = None,
        *,
        key: str | None = None,
        signature: str | None = None,
    ) -> None:
        words = ["curl", _address_of(path)]
        if key is not None:
            words += ["-H", f"Idempotency-Key: {key}"]
        if signature is not None:
            words += ["-H", f"{_SIGNATURE}: {signature[:24]}..."]
        if body is not None:
            words += ["-d", _bytes_of(body).decode()]
        self._teller.command(*words)

    def send(
        self, path: str, body: Body, *, key: str | None = None, signature: str | None = None
    ) -> httpx.Response:
        """Nothing is shown: the answer may be wanted elsewhere, or later."""
        headers = {"Content-Type": "application/json"}
        if key is not None:
            headers["Idempotency-Key"] = key
        if signature is not None:
            headers[_SIGNATURE] = signature
        answer = self._request("POST", path, headers, _bytes_of(body))
        self._count(answer)
        return answer

    def show_answer(self, answer: httpx.Response) -> None:
        told = [f"{name}: {answer.headers[name]}" for name in _TOLD if name in answer.headers]
        status = f"{answer.status_code} {answer.reason_phrase}"
        self._teller.answer(status, [escaped(line) for line in told], escaped(_text_of(answer)))

    def start(self, name: str, order: int, amount: int) -> str:
        """The id of a workflow for this order."""
        body = {"input": {"order": order, "amount": amount}}
        answer = self.post(f"{WORKFLOWS}/{name}/start", body, key=f"{name}-{order}")
        self._teller.check("started", answer.status_code, 201)
        started: str = answer.json()["id"]
        return started

    def await_status(self, execution: str, status: str) -> None:
        def has_it() -> bool:
            return self.status(execution) == status

        self._patience.wait_until(has_it, f"{execution} does not get {status}")

    def await_end(self, execution: str) -> dict[str, Any]:
        """Asked for as often as it takes, and shown once."""
        path = f"{WORKFLOWS}/{execution}?wait=30s"
        self.show(path)
        answers: list[httpx.Response] = []

        def has_ended() -> bool:
            answers.append(self._request("GET", path, {}, None))
            return answers[-1].json()["status"] in _ENDED

        with self._teller.waiting("the workflow goes on"):
            self._patience.wait_until(has_ended, f"{execution} does not end")
        self.show_answer(answers[-1])
        found: dict[str, Any] = answers[-1].json()
        return found

    def status(self, execution: str) -> str:
        found: str = self._request("GET", f"{WORKFLOWS}/{execution}", {}, None).json()["status"]
        return found

    def is_answered(self) -> bool:
        try:
            self._request("GET", "/healthz", {}, None)
        except httpx.TransportError:
            return False
        return True

    def _request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> httpx.Response:
        lines = dict(headers)
        if _SIGNATURE not in lines:
            lines["Authorization"] = f"Bearer {self._secret}"
        return httpx.request(
            method,
            self.url + path,
            content=body,
            headers=lines,
            timeout=SECONDS,
            # A proxy of the environment is not on the way to this machine.
            trust_env=False,
        )

    def _count(self, answer: httpx.Response) -> None:
        self.counts["sent"] += 1
        if "Idempotent-Replayed" in answer.headers:
            self.counts["replayed"] += 1
        if answer.is_client_error:
            self.counts["refused"] += 1


def _address_of(path: str) -> str:
    """As one would type it, with variables for what is long."""
    if path.startswith(WORKFLOWS):
        return f"$FLOWS{path.removeprefix(WORKFLOWS)}"
    return "$HOOK" if path.startswith("/api/v1/webhooks/") else f"$SHOP{path}"


def _bytes_of(body: Body) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def _text_of(answer: httpx.Response) -> str:
    """What matters of a body: the title of a problem, and of a workflow what became of it."""
    if "problem+json" in answer.headers.get("Content-Type", ""):
        title: str = answer.json()["title"]
        return title
    told = answer.json()
    if WORKFLOWS in str(answer.url):
        told = {name: value for name, value in told.items() if name in _MEMBERS}
    # With blanks, at which a line can be folded.
    return json.dumps(told)
