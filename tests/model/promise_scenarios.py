"""Which situations of promises are explored to the end: the small ones always, the large by `make
storm`."""

from tests.model.promises import PromiseModel

SMALL = {
    "by key and by name": PromiseModel(faults=2),
    "by key and by token": PromiseModel(ways=("key", "token")),
    "cancelled": PromiseModel(cancels=1),
    "a rival for the key": PromiseModel(rivals=1),
    "timed out": PromiseModel(timeout=1, later=1),
    "key and parking expire": PromiseModel(key_ttl=1, park_ttl=1, later=1),
}
LARGE = {
    "three faults": PromiseModel(faults=3, cancels=1),
    "everything, one fault": PromiseModel(
        cancels=1, rivals=1, key_ttl=1, park_ttl=1, timeout=1, later=1
    ),
}
