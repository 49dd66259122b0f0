"""How the server has been, as admins are told."""

from tests.fixtures.console_site import ConsoleSite


def test_what_was_asked_shows_in_the_samples(console_site: ConsoleSite) -> None:
    for _ in range(2):
        console_site.post("/orders", "counted", {"item": "tea"})
    samples: list[dict[str, float]] = []
    # They are taken every two seconds; the test's own time limit is the only one.
    while not any(each["replays"] for each in samples):
        samples = console_site.tell("pulse")["samples"]
    assert any(each["requests"] for each in samples)
    assert any(each["p99"] for each in samples)
    assert samples == sorted(samples, key=lambda each: each["at"])
