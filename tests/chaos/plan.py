"""What is going to happen, drawn from a seed. Pure: the same seed, the same acts and jobs."""

import random
from collections.abc import Iterator
from typing import Literal, NamedTuple

Deed = Literal[
    "kill", "kill-all", "freeze", "nap", "jump", "caller-line", "bank-line", "store-line",
    "store", "disk",
]  # fmt: skip
"""`nap`: a freeze shorter than a heartbeat. `store`: the database crashes, and comes back."""

LONGEST_FREEZE = 9.0
_JUMPS = (-3600.0, -60.0, -5.0, 5.0, 60.0, 3600.0)
_BROKEN = ("cut", "slow", "stuck", "deaf")


class Act(NamedTuple):
    """After `rest` seconds, this is done to that server, for so many `seconds`."""

    deed: Deed
    server: int
    rest: float
    seconds: float
    how: str = ""
    by: float = 0.0


def acts(seed: str, deeds: list[Deed], servers: int, calm: float = 1.0) -> Iterator[Act]:
    """Without end. `calm` stretches the rests between them."""
    dice = random.Random(seed)
    while True:
        deed = dice.choice(deeds)
        rest = calm * dice.uniform(0.5, 4.0)
        server = dice.randrange(servers)
        seconds = dice.uniform(0.2, 4.0)
        how, by = dice.choice(_BROKEN), 0.0
        match deed:
            case "freeze":
                seconds = dice.uniform(5.0, LONGEST_FREEZE)
            case "nap":
                seconds = dice.uniform(0.05, 0.5)
            case "jump":
                by, seconds = dice.choice(_JUMPS), dice.uniform(1.0, 8.0)
            case _:
                pass
        yield Act(deed, server, rest, seconds, how, by)


Kind = Literal["request", "order", "cancel", "fork", "forward"]
_KINDS: tuple[tuple[Kind, int], ...] = (
    ("request", 60), ("order", 20), ("cancel", 5), ("fork", 6), ("forward", 9),
)  # fmt: skip


class Job(NamedTuple):
    """Work for a crowd of callers; what each of them does is drawn from `dice`. Requests go to one
    of `places`, or anywhere."""

    number: int
    kind: Kind
    dice: random.Random
    places: tuple[str, ...] = ()


def job(seed: str, number: int, kinds: tuple[str, ...] = (), places: tuple[str, ...] = ()) -> Job:
    """The job of that number, whenever it comes to be done."""
    dice = random.Random(f"{seed}:{number}")
    wanted = [(kind, weight) for kind, weight in _KINDS if not kinds or kind in kinds]
    names, weights = zip(*wanted, strict=True)
    return Job(number, dice.choices(names, weights)[0], dice, places)
