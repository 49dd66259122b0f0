"""Who was found to be calling, by what a credential says. OnceKey's own names are nobody's."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from oncekey.core.api_keys import Role
from oncekey.core.errors import ScopeInvalid, Unauthorized
from oncekey.core.scope import SENTINELS, SUBJECT_TYPES, TENANT_LEVEL, namespace_of
from oncekey.wire.identity import Identity

RESERVED_SUBJECTS = frozenset({"service:oncekey", "service:webhook-ingest"})
"""Keys of these are OnceKey's own; a caller of that name could ask for their answers."""


class Known(NamedTuple):
    identity: Identity
    namespace: str
    role: Role = "caller"


class Verified(NamedTuple):
    """How long a caller may be believed without asking again. Times are milliseconds."""

    known: Known
    until: int
    """By the steady clock."""
    expires_at: float | None
    """By the wall clock: from then on the credential itself is no good."""
    generation: int
    """Of its verifier, when the credential was verified."""


class Verifier(Protocol):
    """Verifies one kind of credential."""

    @property
    def generation(self) -> int:
        """Whatever was verified under another one counts no longer."""
        ...

    async def verify(self, secret: str) -> Verified:
        """Raises `Unauthorized`, `IdentityUnavailable`."""
        ...

    async def close(self) -> None: ...


def known_of(tenant: str, project: str | None, subject: str) -> Known:
    """The caller that a token, a key of somebody else's or a gateway names.

    Without a project it works at the level of its tenant; nobody names that level himself.
    Raises `Unauthorized` and says which part is wrong.
    """
    if project in SENTINELS:
        raise Unauthorized(f"project {project!r} is reserved; leave it out for no project")
    if not subject.isprintable():
        raise Unauthorized("the subject has characters that cannot be shown")
    return believed(tenant, TENANT_LEVEL if project is None else project, subject)


def believed(tenant: str, project: str, subject: str, role: Role = "caller") -> Known:
    """The same from what OnceKey itself keeps, which may be at the level of a tenant."""
    if subject in RESERVED_SUBJECTS:
        raise Unauthorized(f"subject {subject!r} is reserved for OnceKey itself")
    try:
        namespace = namespace_of(tenant, project, subject)
    except ScopeInvalid as error:
        raise Unauthorized(str(error)) from None
    return Known(Identity(subject, tenant, project), namespace, role)


def typed(subject: str, type: str = "typed") -> str:  # noqa: A002 - the word of the setting
    """`user:7` for `7`; what names a type already is left as it is, unless `type` is fixed."""
    if type != "typed":
        return f"{type}:{subject}"
    return subject if subject.partition(":")[0] in SUBJECT_TYPES else f"user:{subject}"
