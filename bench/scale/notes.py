"""What the report says around its tables."""

HEAD = """\
# At scale

Made by `python -m bench.scale`: ten million keys, a million promises, a hundred thousand waiting
workflows, and half an hour of load, on SQLite (`synchronous=FULL`) and on PostgreSQL (`fsync=on`,
otherwise as it comes: 128 MB of shared buffers).

**Read curves and ratios, not rates.** The machine has two cores and one disk, which the store,
PostgreSQL's own processes and those who ask share. Each part had it to itself, but for two: both
soaks were at the same time, and SQLite's growth up to 2.5 million keys was measured beside other
work, which its wide ranges show. A ratio is of two stores that took turns within seconds;
processor time is that of the process alone.
"""
GROWTH = """\
## Growth

![Growth](growth.svg)

One store is filled in steps, in bulk and through the product's own schema, with settled keys:
each has its own digest and an answer of 24 bytes. At each step one process with 64 callers claims
and settles new keys, and asks for stored keys at random. The *ratio* is its rate over that of a
small store, which began with 10,000 keys and was measured before and after it in each of five
rounds; in brackets the lowest and the highest. *Processor µs* is what the process takes for one
of them, beside what it takes on the small store. The replays are of keys that no process has in
memory, on either side; 256 again and again are answered from memory on SQLite, and by the store
on PostgreSQL, where another machine may purge a key.

`kill -9` comes while 64 claims are held; the seconds are from there until another process,
started then, has taken all of them over. PostgreSQL has to wait for the lease, here 3 s.
"""
SWEEP = """\
## Sweep

First two sweeps of the full store, with nothing in it past its time. Then a tenth as many keys
are added that are, and a sweep deletes them, a hundred at a time, and rests as long as it works;
after 280 s it is stopped. Meanwhile 64 callers claim and settle new keys as fast as they can.

The first of the sweeps finds the processes that filled the store, which are gone, and looks once
through all that came after them for what they may hold, however many they are: as long as it takes
here it takes only where ten million keys came after a process, and before a sweep. One of them
does hold a claim, which nobody has asked for again.
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
kept for a minute and swept every 10 s, and 4 MiB of answers are kept in memory; every 10 s there
is a sample, and `/metrics` is asked for. Both stores were under load at the same time, on two
cores with those who asked.
"""
AFTERWORD = """\
## What gets worse, and why

- **Replays that are not in memory.** On SQLite the rate is 0.55 with the first million keys, and
  no less with ten (0.61), at one and a half times the processor: digests are random, and the page
  of one is no longer among the 64 MiB that a connection holds. On PostgreSQL, with 128 MB of
  buffers, it is 0.85 with a million and 0.76 with ten, at the same processor time of the process.
- **New keys**: none on SQLite, where with ten million keys it is 1.09 of the rate with ten
  thousand. On PostgreSQL it is 0.92 with five million and 0.85 with ten, at the same processor
  time of the process: it is the database that takes longer.
- **Memory** on SQLite grows until the page caches are full, and stays. On PostgreSQL it does not
  grow.
- **Opening, first claims and takeovers** show no trend: nothing is read but what is asked for. A
  second and more are those of a busy machine that starts Python.
- **A sweep** looks behind the processes that are gone, which may be at every key since, a window
  at a time and outside of any transaction, and again only when what they held is past its time.
- **Promises and wakes on PostgreSQL** are slow whatever the size: each resolution takes seven
  round trips in its transaction. On SQLite there are none.
- **The soak**: files and threads stay, the sweep keeps up, and what Python holds comes to rest
  within minutes, as its caches are bounded; resident memory follows the file on SQLite, until its
  page caches of 64 MiB each are full. What grows on disk is kept for a week by design, whatever
  the retention: settled promises that no workflow waits for, and the request keys of deliveries
  that resolved one. The rows say so: between the middle and the end, claims grew by about as many
  as there were deliveries and promises. In the second half both stores stood still at the same
  moments, once for many seconds, and neither used more of a core than before: all that they had
  in common was the machine, and its disk. Answers that were *not as expected*: three requests with
  another body, each of which had stood in line then until its key, kept for a minute, was new
  again.
"""
