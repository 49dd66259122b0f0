"""What keeps a page from being anybody else's: headers that every answer has, cookies, and forms
that only come from here."""

from __future__ import annotations

import hmac
import logging
import time
from collections.abc import Callable

from starlette.datastructures import Headers

from oncekey.core.flood import Flood
from oncekey.core.sessions import LIFE, Session

log = logging.getLogger("oncekey")

ROOT = "/console"
COOKIE = "oncekey_console"
PROOF = "proof"
"""The field of a form that shows that it is ours."""

# No script but ours, from files; nobody else's page around ours.
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
SAFETY = {
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    # Not `no-referrer`: browsers would no longer say from where a form was sent.
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


def token_in(headers: Headers) -> str | None:
    """Of the session; None without one. Of two cookies neither counts: one of them is not ours.

    What an app beside the console keeps in its cookies is passed over, in whatever form: a parser
    of all of them would give up at the first that is malformed.
    """
    crumbs = [crumb for line in headers.getlist("cookie") for crumb in line.split(";")]
    pairs = (crumb.partition("=") for crumb in crumbs)
    found = [value.strip() for name, _, value in pairs if name.strip() == COOKIE]
    return found[0] if len(found) == 1 else None


NO_COOKIE = f"{COOKIE}=; Path={ROOT}; Max-Age=0; HttpOnly; SameSite=Lax"


def cookie_of(token: str, *, secure: bool) -> str:
    parts = [f"{COOKIE}={token}", f"Path={ROOT}", f"Max-Age={int(LIFE)}"]
    parts += ["HttpOnly", "SameSite=Lax", *(["Secure"] if secure else [])]
    return "; ".join(parts)


def is_secure(scheme: str, headers: Headers) -> bool:
    """Whether the browser speaks TLS. Behind a gateway that ends it, only the browser knows."""
    return scheme == "https" or headers.get("origin", "").startswith("https://")


def comes_from_here(headers: Headers) -> bool:
    """Whether a form was sent by one of our pages, as far as browsers tell."""
    if not is_navigation(headers):
        return False
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = headers.get("origin")
    if origin is None:
        return True
    host = headers.get("host", "")
    return origin in {f"http://{host}", f"https://{host}"}


def is_navigation(headers: Headers) -> bool:
    """Whether somebody goes to a page, as far as browsers tell. A script that fetches it may be one
    of an app that is served beside the console, from the same origin."""
    return headers.get("sec-fetch-mode", "navigate") == "navigate"


def is_proven(session: Session, proof: str) -> bool:
    return hmac.compare_digest(session.proof.encode(), proof.encode())


def _steady() -> int:
    return time.monotonic_ns() // 1_000_000


class Refusals:
    """Who could not sign in, in the log. Anybody can try, so that it is bounded."""

    MOST = 60
    """Lines a minute."""

    def __init__(self, steady: Callable[[], int] = _steady) -> None:
        self._flood = Flood(steady, self.MOST, _tell_more)

    def note(self, peer: str | None) -> None:
        if self._flood.admit(("console", "sign-in")):
            log.warning(
                "a sign-in to the console was refused, from %s", peer or "an unknown address"
            )


def _tell_more(_: tuple[str, str], times: int) -> None:
    log.warning("sign-ins to the console were refused, %d more", times)
