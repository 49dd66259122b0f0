"""What a verified token says, and whether it is for us and for now. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oncekey.core.errors import Unauthorized
from oncekey.edge.identity.known import Known, known_of, typed

Claims = Mapping[str, Any]

# Later than the year 9999 means milliseconds where seconds belong.
_LATEST = 253_402_300_799


@dataclass(frozen=True, slots=True)
class ClaimRules:
    """Which claims name the caller, and what must be true of the others.

    A dotted name reaches into objects: `org.id`. Without `audience` or `issuer` any will do.
    """

    issuer: str | None = None
    audience: frozenset[str] = frozenset()
    """The token is for one of these."""
    tenant: str = "tenant_id"
    project: str = "project_id"
    subject: str = "sub"
    subject_type: str = "typed"
    """`typed` leaves `user:7` and `service:ci` as they are; any other is put before each."""
    fixed_tenant: str | None = None
    """Of every token, for issuers that name none; one that names another is refused."""
    leeway: float = 30.0
    """How far apart the clocks of issuer and edge may be, in seconds."""

    def known_in(self, claims: Claims) -> Known:
        """Raises `Unauthorized`."""
        subject = _name_in(claims, self.subject)
        if subject is None:
            raise Unauthorized(f"the token has no subject in {self.subject!r}")
        tenant, project = self._tenant_in(claims), _name_in(claims, self.project)
        return known_of(tenant, project, typed(subject, self.subject_type))

    def expiry_in(self, claims: Claims, now: float) -> float:
        """When it expires, in seconds as `now` is. Raises `Unauthorized` for a token that is not
        for us, or not for now."""
        self._check_target(claims)
        expires_at = _time_in(claims, "exp")
        if expires_at is None:
            raise Unauthorized("the token has no expiry; 'exp' is required")
        if now >= expires_at + self.leeway:
            raise Unauthorized("the token has expired")
        for name in ("nbf", "iat"):
            begins_at = _time_in(claims, name)
            if begins_at is not None and now < begins_at - self.leeway:
                raise Unauthorized(f"the token is not good yet, by its {name!r}")
        return expires_at

    def _tenant_in(self, claims: Claims) -> str:
        tenant = _name_in(claims, self.tenant) or self.fixed_tenant
        if tenant is None:
            raise Unauthorized(f"the token has no tenant in {self.tenant!r}")
        if self.fixed_tenant is not None and tenant != self.fixed_tenant:
            raise Unauthorized(f"the token is of a tenant other than {self.fixed_tenant!r}")
        return tenant

    def _check_target(self, claims: Claims) -> None:
        if self.issuer is not None and claims.get("iss") != self.issuer:
            raise Unauthorized("the token is of another issuer")
        if not self.audience:
            return
        audience = claims.get("aud")
        named = audience if isinstance(audience, list) else [audience]
        if not any(isinstance(each, str) and each in self.audience for each in named):
            raise Unauthorized("the token is for another audience")


def _name_in(claims: Claims, name: str) -> str | None:
    """Numbers are names as well; None for none."""
    match _claim_in(claims, name):
        case None:
            return None
        case bool():
            raise Unauthorized(f"the claim {name!r} is no name")
        case int(number):
            return str(number)
        case str(text) if text.strip():
            return text
        case _:
            raise Unauthorized(f"the claim {name!r} is no name")


def _claim_in(claims: Claims, name: str) -> Any:
    """Names with dots in them are older than paths: what is named so in full comes first."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        if not isinstance(found, Mapping) or part not in found:
            return None
        found = found[part]
    return found


def _time_in(claims: Claims, name: str) -> float | None:
    if name not in claims:
        return None
    value = claims[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unauthorized(f"{name!r} is no number of seconds")
    # False for what is infinite or no number, too.
    if not 0 <= value <= _LATEST:
        raise Unauthorized(f"{name!r} is no time in seconds since 1970")
    return float(value)
