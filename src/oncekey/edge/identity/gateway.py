"""Identity headers of a gateway that has authenticated the caller. They count for nothing unless
the connection comes from an address that is listed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from oncekey.core.errors import ConfigurationError, Unauthorized
from oncekey.edge.identity.known import Known, known_of, typed

_LONGEST = 1024


class Gateway:
    """`trusted`: addresses and networks. Tenant and subject are needed, the project is not."""

    def __init__(
        self,
        trusted: Iterable[str],
        *,
        tenant: str = "X-Tenant-Id",
        project: str = "X-Project-Id",
        subject: str = "X-Subject",
    ) -> None:
        self._networks = tuple(_network_of(each) for each in trusted)
        self._tenant, self._project, self._subject = (
            name.lower().encode("ascii") for name in (tenant, project, subject)
        )
        self.headers = frozenset({self._tenant, self._project, self._subject})
        """Their names; none of them may go on to a service behind as a client sent it."""
        if len(self.headers) != 3:
            raise ConfigurationError(
                "auth.gateway.headers: tenant, project and subject must be three headers"
            )
        self.trusts = lru_cache(maxsize=1024)(self._trusts)

    def known_in(self, headers: Sequence[tuple[bytes, bytes]]) -> Known | None:
        """Ask only for a peer that it trusts. None when the gateway names nobody. Raises
        `Unauthorized` for a header that is there twice, or cannot be what it says."""
        found: dict[bytes, str] = {}
        for name, value in headers:
            if name in self.headers:
                if name in found:
                    # A client's copy beside the gateway's: nobody can tell which is whose.
                    raise Unauthorized(f"there are two {name.decode()} headers; send one")
                found[name] = _text_of(name, value)
        tenant, subject = found.get(self._tenant), found.get(self._subject)
        if not tenant or not subject:
            return None
        return known_of(tenant, found.get(self._project) or None, typed(subject))

    def _trusts(self, peer: str) -> bool:
        """An address of a connection. What has none, such as a Unix socket, is not trusted."""
        try:
            address = ip_address(peer)
        except ValueError:
            return False
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self._networks)


def _network_of(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text.strip())
    except ValueError as error:
        raise ConfigurationError(
            f"auth.gateway.trusted: {text!r} is neither an address nor a network such as "
            f"10.0.0.0/8: {error}"
        ) from None


def _text_of(name: bytes, value: bytes) -> str:
    if len(value) > _LONGEST:
        raise Unauthorized(f"the header {name.decode()} is longer than {_LONGEST} bytes")
    try:
        return value.strip().decode("utf-8")
    except UnicodeDecodeError:
        raise Unauthorized(f"the header {name.decode()} is no UTF-8") from None
