"""Which situations of the ledger are explored to the end: the small ones always, the large by `make
storm`."""

from tests.model.ledger import LedgerModel
from tests.model.ledger_state import X, Y

SMALL = {
    "rerun": LedgerModel("rerun", faults=2),
    "refuse": LedgerModel("refuse", faults=2),
    "recover": LedgerModel("recover"),
    "other requests": LedgerModel(fingerprints=(X, X, Y), faults=2),
    "purged": LedgerModel(purges=1),
    "expired": LedgerModel(expires=True),
}
LARGE = {
    "recover, two faults": LedgerModel("recover", faults=2),
    "expired, two faults": LedgerModel(expires=True, faults=2),
    "expired, purged, other requests": LedgerModel(fingerprints=(X, X, Y), purges=1, expires=True),
    "refuse, three faults": LedgerModel("refuse", faults=3),
}
