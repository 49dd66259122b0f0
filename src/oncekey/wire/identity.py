"""Who is calling, when nobody tells us: a caller is known by what it proves itself with."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

from oncekey.core.scope import TENANT_LEVEL, namespace_of

_CREDENTIALS = frozenset({b"authorization", b"x-api-key", b"cookie"})
_SESSION_COOKIES = (b"session=", b"sessionid=")


class Identity(NamedTuple):
    """Whose key it is. Subjects are `user:…`, `service:…`, `tenant_member:…` or `client:…`."""

    subject: str = "client:anonymous"
    tenant: str = "default"
    project: str = TENANT_LEVEL


def namespace_for(identity: Identity | str) -> str:
    """The namespace of an identity; a plain string is taken as its subject."""
    if isinstance(identity, str):
        identity = Identity(identity if ":" in identity else f"user:{identity}")
    return namespace_of(identity.tenant, identity.project, identity.subject)


def namespace_of_credentials(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Callers with different credentials never share a key.

    Credentials are not verified here, so nothing inside them is believed: a token that only
    claims to be somebody's is somebody else's. Applications that rotate tokens between a request
    and its retry give the middleware an `identity` function instead.
    """
    found = [pair for pair in headers if pair[0] in _CREDENTIALS]
    if not found:
        return _namespace(b"")
    parts = []
    for name, value in found:
        parts.append(_session_in(value) if name == b"cookie" else value)
    return _namespace(b"\0".join(part for part in parts if part))


def _session_in(cookie: bytes) -> bytes:
    crumbs = [crumb.strip() for crumb in cookie.split(b";")]
    return b";".join(crumb for crumb in crumbs if crumb.startswith(_SESSION_COOKIES))


def _namespace(credentials: bytes) -> str:
    if not credentials:
        return namespace_of()
    return namespace_of(subject="client:" + blake2b(credentials, digest_size=16).hexdigest())
