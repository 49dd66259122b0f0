"""Where the time of one request goes: `python -m bench.profile`."""
