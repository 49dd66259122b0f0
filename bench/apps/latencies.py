"""How long things took: half of them no longer, one in a hundred longer, and the longest."""


def percentiles(latencies: list[float]) -> dict[str, float]:
    """Of seconds, in any order; one at least."""
    ordered = sorted(latencies)
    return {
        "p50_ms": ordered[len(ordered) // 2] * 1e3,
        "p99_ms": ordered[len(ordered) * 99 // 100] * 1e3,
        "max_ms": ordered[-1] * 1e3,
    }
