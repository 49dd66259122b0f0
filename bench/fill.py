from pathlib import Path
def fill(database: Path, *, live: int, expired: int = 0) -> Path:
    raise NotImplementedError
