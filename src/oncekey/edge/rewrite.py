"""The namespaced key: `t-{tenant}:{project}:{subject}:{raw-key}`. No part can be forged inside
another, and none of what a client sends passes for it."""

from __future__ import annotations

from oncekey.core.errors import KeyInvalid

MAX_NAMESPACED = 640

# Who calls is told to the service behind in these; whatever a client sends in them is removed.
TENANT, PROJECT, SUBJECT = b"x-tenant-id", b"x-project-id", b"x-subject"
IDENTITY_HEADERS = frozenset({TENANT, PROJECT, SUBJECT})


def namespaced(namespace: str, raw: str) -> str:
    """The key as the service behind sees it. `namespace` ends with the subject."""
    key = f"{namespace}:{raw}"
    if len(key) > MAX_NAMESPACED:
        most = MAX_NAMESPACED - len(namespace) - 1
        raise KeyInvalid(
            f"the key is too long: with tenant, project and subject in front of it, it may have "
            f"{MAX_NAMESPACED} characters; for this caller that leaves {most}",
            "length",
        )
    return key
