"""Enqueues a job twice and waits for both: `python enqueue.py ORDER`."""

import sys

from jobs import send_mail
from redis import Redis
from rq import Queue, Retry

queue = Queue("mails", connection=Redis(port=6379))
order = int(sys.argv[1])
# An attempt that is killed, or finds the job in progress, is followed by another one.
again = Retry(max=3, interval=1)
for job in [queue.enqueue(send_mail, order, retry=again) for _ in range(2)]:
    result = job.latest_result(timeout=60) or sys.exit("nobody works here")
    print(result.return_value or (result.exc_string or "").strip().splitlines()[-1])
