"""One process that walks, under one instrument: `python -m bench.profile.walking WALK TIMES`. Its
last line is JSON: figures of one walk, and stacks where they were looked at."""

import argparse
import asyncio
import json
import tempfile
from pathlib import Path

import uvloop

from bench.profile.instruments import INSTRUMENTS, Instrument, Stacks
from bench.profile.walks import AT_ONCE, WALKS, Place, Step

# What is remembered, compiled or made the first time is not what is looked at.
WARM = 300


async def _walk(step: Step, numbers: range) -> None:
    left = iter(numbers)

    async def caller(name: int) -> None:
        for number in left:
            await step(name, number)

    await asyncio.gather(*(caller(name) for name in range(AT_ONCE)))


async def _measured(name: str, times: int, place: Place, instrument: Instrument) -> None:
    async with WALKS[name].ready(place) as step:
        await _walk(step, range(WARM))
        with instrument:
            await _walk(step, range(WARM, WARM + times))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.profile.walking")
    parser.add_argument("walk", choices=tuple(WALKS))
    parser.add_argument("times", type=int)
    parser.add_argument("--under", choices=tuple(INSTRUMENTS), default="clock")
    parser.add_argument("--store", help="its URL; a new file of SQLite unless given")
    return parser.parse_args()


def main() -> None:
    asked = _arguments()
    instrument = INSTRUMENTS[asked.under]()
    with tempfile.TemporaryDirectory(prefix="oncekey-profile-", dir="/var/tmp") as found:
        folder = Path(found)
        place = Place(folder, asked.store or f"sqlite:///{folder}/walk.db", WARM + asked.times)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_measured(asked.walk, asked.times, place, instrument))
    told = {name: value / asked.times for name, value in instrument.figures.items()}
    folded = instrument.folded if isinstance(instrument, Stacks) else ""
    print(json.dumps({"figures": told, "folded": folded}), flush=True)


if __name__ == "__main__":
    main()
