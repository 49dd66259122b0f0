"""Which fixtures every test may ask for; each lives in its own file under fixtures/."""

pytest_plugins = [
    "tests.fixtures.command",
    "tests.fixtures.event_loop",
    "tests.fixtures.ports",
    "tests.fixtures.postgres",
    "tests.fixtures.processes",
    "tests.fixtures.receiver",
    "tests.fixtures.served",
    "tests.fixtures.shelf",
    "tests.fixtures.street",
]
