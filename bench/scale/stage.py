"""Where a part of the run happens: the scratch folder, the sizes, and what is told on the way."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import oncekey
from bench.scale.places import Place
from bench.scale.sizes import Sizes

Found = dict[str, Any]
"""What a part found on one store, as it goes into results.json."""


class Stage(NamedTuple):
    scratch: Path
    store: str
    sizes: Sizes
    new_database: Callable[[str], str]
    began: float

    def new_place(self) -> Place:
        """With its tables, and nothing in them."""
        place = Place(self.store, self.new_database(self.store))
        oncekey.open(place.url, sweep_interval=0.0).close()
        return place

    def log(self, name: str) -> Path:
        return self.scratch / f"{name}-{self.store}.log"

    def tell(self, text: str) -> None:
        minutes = (time.monotonic() - self.began) / 60
        print(f"  {minutes:5.1f} min  {self.store}  {text}", flush=True)
