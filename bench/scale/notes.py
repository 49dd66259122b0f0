"""What the report says around its tables."""

HEAD = """\
# At scale

Made by `python -m bench.scale`: ten million keys, a million promises, a hundred thousand waiting
workflows, and half an hour of load, on SQLite (`synchronous=FULL`) and on PostgreSQL (`fsync=on`,
otherwise as it comes: 128 MB of shared buffers).

**Read curves and ratios, not rates.** The machine has two cores and one disk, and others compiled
and ran tests and servers on it all the while, as the load averages at the end say. A ratio is of
two stores that took turns within seconds; processor time is that of the process alone. Rates,
latencies and seconds are what was left over.
"""
GROWTH = """\
## Growth

![Growth](growth.svg)

One store is filled in steps, in bulk and through the product's own schema, with settled keys:
each has its own digest and an answer of 24 bytes. At each step one process with 64 callers claims
and settles new keys, and asks for stored keys at random. The *ratio* is its rate over that of a
small store, which began with 10,000 keys and was measured before and after it in each of five
rounds; in brackets the lowest and the highest. Replays are of keys that the process does not have
in memory, on either side; from memory they are answered without the store. *Processor µs* is what
the process takes for one new key, claim and settle together.

`kill -9` comes while 64 claims are held; the seconds are from there until another process,
started then, has taken all of them over. PostgreSQL has to wait for the lease, here 3 s.
"""
SWEEP = """\
## Sweep

A tenth of the keys of the full store is past its time. A sweep deletes them, a hundred at a time,
and rests as long as it works; meanwhile 64 callers claim and settle new keys as fast as they can.
The store also has a claim of a process that died before all other keys were made, and that nobody
asked for again: what follows it is looked through at the end of every sweep.
"""
PROMISES = """\
## Promises

Pending promises with a key each, made by the engine in one process with 64 callers, or in bulk.
Looked at with none, and with all: made, looked up and resolved by key, at places all over the
store; and resolutions that are parked, as their promise does not exist.
"""
WORKFLOWS = """\
## Waiting workflows

One process starts workflows that wait for a promise, and is killed. Another is started, resolves
some of them, rests, and then a tenth of all is resolved at once.
"""
SOAK = """\
## Soak

![Soak](soak.svg)

`oncekey serve`, one process, with an app and workflows behind it: new keys, replays, the same key
with another body, two requests of one key at once, workflows that are started and wait, signed
deliveries that resolve what they wait for, deliveries that come again, promises. They come at a
steady rate whatever the server does, and a latency counts from when its request was due. Keys are
kept for a minute and swept every 10 s; every 10 s there is a sample, and `/metrics` is asked for.
"""
AFTERWORD = ""
