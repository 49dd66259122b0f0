"""Values to objects: the only factory."""

from oncekey.compose.ledger import open_ledger, store_of

__all__ = ["open_ledger", "store_of"]
