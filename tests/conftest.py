"""Which fixtures every test may ask for; each lives in its own file under fixtures/."""

from hypothesis import settings

# How long an example takes is the machine's business; pytest's own timeout finds what hangs.
settings.register_profile("oncekey", deadline=None)
settings.load_profile("oncekey")

pytest_plugins = [
    "tests.fixtures.browser",
    "tests.fixtures.collected",
    "tests.fixtures.colours",
    "tests.fixtures.command",
    "tests.fixtures.event_loop",
    "tests.fixtures.garbage",
    "tests.fixtures.ports",
    "tests.fixtures.postgres",
    "tests.fixtures.processes",
    "tests.fixtures.proofs",
    "tests.fixtures.receiver",
    "tests.fixtures.restate",
    "tests.fixtures.served",
    "tests.fixtures.shelf",
    "tests.fixtures.site",
    "tests.fixtures.street",
    "tests.fixtures.temporal_server",
    "tests.fixtures.vault",
    "tests.fixtures.workers",
    "tests.fixtures.workshop",
    # Of those above.
    "tests.fixtures.console_site",
    "tests.fixtures.edge_site",
    "tests.fixtures.desk",
    "tests.fixtures.restate_edge",
    "tests.fixtures.stronghold",
    "tests.fixtures.hooks",
    "tests.fixtures.ways",
    "tests.fixtures.fuzzed",
]
