"""Whose key it is: tenant, project, subject, endpoint. No part can be forged inside another."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote

from oncekey.core.errors import ScopeInvalid

TENANT_LEVEL = "_tenant"
PLATFORM_LEVEL = "_platform"
SENTINELS = frozenset({TENANT_LEVEL, PLATFORM_LEVEL})

_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
SUBJECT_TYPES = frozenset({"user", "service", "tenant_member", "client"})
_UNRESERVED = "._~@-"
_MAX_SUBJECT_ID = 400


class Scope(NamedTuple):
    """`namespace` is `t-{tenant}:{project}:{subject}`; `endpoint` is what the key belongs to."""

    namespace: str
    endpoint: str = ""


@lru_cache(maxsize=4096)
def namespace_of(
    tenant: str = "default", project: str = TENANT_LEVEL, subject: str = "client:anonymous"
) -> str:
    """The namespace of an identity. Raises `ScopeInvalid` and names the part that is wrong."""
    if not _SLUG.fullmatch(tenant):
        raise ScopeInvalid(f"tenant {tenant!r} is not a slug (letters, digits, '-' and '_')")
    if project not in SENTINELS and not _SLUG.fullmatch(project):
        raise ScopeInvalid(f"project {project!r} is neither a slug nor one of {sorted(SENTINELS)}")
    return f"t-{tenant}:{project}:{subject_of(subject)}"


def subject_of(subject: str) -> str:
    """`type:id` with everything outside `[A-Za-z0-9._~@-]` in the id percent-encoded."""
    kind, _, identifier = subject.partition(":")
    if kind not in SUBJECT_TYPES:
        raise ScopeInvalid(f"subject type {kind!r} is not one of {sorted(SUBJECT_TYPES)}")
    if not identifier:
        raise ScopeInvalid(f"subject {subject!r} has no id after its type")
    encoded = quote(identifier, safe=_UNRESERVED, errors="surrogatepass")
    if len(encoded) > _MAX_SUBJECT_ID:
        raise ScopeInvalid(f"the subject id is longer than {_MAX_SUBJECT_ID} characters")
    return f"{kind}:{encoded}"
