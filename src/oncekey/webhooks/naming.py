"""The keys of a delivery: its own in the ledger, that of its body, and that of what follows it."""

from __future__ import annotations

from hashlib import blake2b, sha256
from urllib.parse import quote

from oncekey.core.claim import Claim
from oncekey.core.errors import IdentifierMissing
from oncekey.core.key import MAX_KEY_LENGTH
from oncekey.core.model import Operation, Record, Ref, Takeover
from oncekey.core.scope import Scope, namespace_of
from oncekey.webhooks.delivery import Event, Item
from oncekey.webhooks.sources import SUBJECT, Source

RETENTION = "webhook"
BODY = "#body"
"""Behind the endpoint of a webhook: what its bodies are remembered under."""

_PATH = "POST /api/v1/webhooks/"
_PLAIN = "._~:-"


def operation_of(source: Source, item: Item, takeover: Takeover = "rerun") -> Operation:
    """An item is the same whatever else is in the delivery, so there is no fingerprint."""
    key = f"{source.provider}-{quote(item.identifier, safe=_PLAIN, errors='surrogatepass')}"
    if len(key) > MAX_KEY_LENGTH:
        raise IdentifierMissing(
            f"the identifier is too long to be a key: with the provider in front of it and special "
            f"characters encoded it has {len(key)} characters; {MAX_KEY_LENGTH} are allowed"
        )
    return Operation(Ref(scope_of(source), key), retention=RETENTION, takeover=takeover)


def body_operation_of(source: Source, event: Event, item: Item, key: str) -> Operation:
    """What was signed, as the key; as the fingerprint, the name it came under first. Another name
    for it is a mismatch."""
    signed = event.proof if len(event.items) == 1 else item.body
    scope = scope_of(source)
    ref = Ref(scope._replace(endpoint=scope.endpoint + BODY), sha256(signed).hexdigest())
    return Operation(ref, name_digest(key), retention=RETENTION)


def name_digest(key: str) -> bytes:
    """The name of a delivery, as the fingerprint of its body."""
    return blake2b(key.encode(), digest_size=16).digest()


def is_delivery(scope: Scope) -> bool:
    """Whether its keys are those of deliveries, not of their bodies or of anything else."""
    return (
        scope.namespace.endswith(f":{SUBJECT}")
        and scope.endpoint.startswith(_PATH)
        and not scope.endpoint.endswith(BODY)
    )


def namespaced(operation: Operation) -> str:
    """The key as the service behind sees it."""
    return f"{operation.ref.scope.namespace}:{operation.ref.key}"


def effect_key(claim: Claim | Record) -> str:
    """Under which what follows is done in durable work: `stripe-evt_1:op_…`.

    The operation has the same number for whoever takes the claim over, so that nothing is done
    twice after a crash. Two webhooks never have the same, and a key that was purged gets another:
    then it is done again, as was asked for.
    """
    ref = claim.ref if isinstance(claim, Record) else claim.operation.ref
    return f"{ref.key}:{claim.operation_id}"


def path_of(source: Source) -> str:
    """Where its deliveries go to, on whatever host."""
    return f"/api/v1/webhooks/{source.provider}/{source.id}"


def place_of(provider: str) -> str:
    """For those who count: one for each provider, however many webhooks there are."""
    return f"{_PATH}{provider}/{{webhook_id}}"


def scope_of(source: Source) -> Scope:
    namespace = namespace_of(source.tenant, source.project, SUBJECT)
    return Scope(namespace, f"POST {path_of(source)}")
