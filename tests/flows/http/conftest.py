"""Sites: every framework on every store. One of each serves all tests of this folder."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from oncekey import Ledger
from oncekey.compose import store_of
from oncekey.core.clock import SystemClock
from oncekey.core.ports import Insert, Settle
from oncekey.stores.values import JsonCodec
from tests.fixtures.http.adapters import ADAPTERS
from tests.fixtures.http.cut import CutStore
from tests.fixtures.http.servers import serving
from tests.fixtures.http.site import Case, Site

STORES = ["memory", "sqlite"]


@pytest.fixture(scope="session", params=STORES)
def store_kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


@pytest.fixture(scope="session", params=ADAPTERS, ids=lambda adapter: adapter.name)
def site(
    request: pytest.FixtureRequest, store_kind: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    url = "memory://" if store_kind == "memory" else f"sqlite:///{folder}/oncekey.db"
    clock = SystemClock()
    store = CutStore(store_of(url, clock, lease=15.0, heartbeat=5.0, migrate=True))
    ledger = Ledger(store, codec=JsonCodec(), clock=clock)
    site = Site(request.param, ledger, store)
    app = site.adapter.build(site.service, ledger)
    with serving(site.adapter.kind, app) as site.port:
        yield site
    ledger.close()


@pytest.fixture(scope="session")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as pool:
        yield pool


@pytest.fixture
def case(site: Site, pool: ThreadPoolExecutor) -> Case:
    return Case(site, pool)


@pytest.fixture
def claims_cut(site: Site) -> Iterator[None]:
    """The store cannot be reached when a request comes in."""
    site.store.cut(Insert)
    yield
    site.store.mend()


@pytest.fixture
def outcomes_cut(site: Site) -> Iterator[None]:
    """The store goes away while a handler runs."""
    site.store.cut(Settle)
    yield
    site.store.mend()
