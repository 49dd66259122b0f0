"""Who is calling, when nobody tells us: a caller is known by what it proves itself with."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

from oncekey.core.scope import SUBJECT_TYPES, TENANT_LEVEL, namespace_of

_ANONYMOUS = namespace_of()
_SESSION_COOKIES = (b"session=", b"sessionid=")


class Identity(NamedTuple):
    """Whose key it is. Subjects are `user:…`, `service:…`, `tenant_member:…` or `client:…`."""

    subject: str = "client:anonymous"
    tenant: str = "default"
    project: str = TENANT_LEVEL


def namespace_for(identity: Identity | str) -> str:
    """The namespace of an identity; a plain string is a subject, or the id of a user."""
    if isinstance(identity, str):
        typed = identity.partition(":")[0] in SUBJECT_TYPES
        identity = Identity(identity if typed else f"user:{identity}")
    return namespace_of(identity.tenant, identity.project, identity.subject)


def namespace_of_credentials(credentials: Sequence[bytes]) -> str:
    """Callers with different credentials never share a key.

    Credentials are not verified here, so nothing inside them is believed: a token that only
    claims to be somebody's is somebody else's. Applications that rotate tokens between a request
    and its retry give the middleware an `identity` function instead.
    """
    if not credentials:
        return _ANONYMOUS
    # In any order: proxies and clients need not keep that of the first request.
    joined = b"\0".join(sorted([each for each in credentials if each]))
    if not joined:
        return namespace_of()
    return namespace_of(subject="client:" + blake2b(joined, digest_size=16).hexdigest())


def session_in(cookie: bytes) -> bytes:
    """The session of a cookie header; other cookies change between a request and its retry."""
    crumbs = [crumb.strip() for crumb in cookie.split(b";")]
    return b";".join(sorted([crumb for crumb in crumbs if crumb.startswith(_SESSION_COOKIES)]))
