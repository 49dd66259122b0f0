"""Enqueues a job twice and waits for both: `python enqueue.py ORDER`."""

import sys
import time

from jobs import mail_job
from redis import Redis
from rq import Queue, Retry

queue = Queue("mails", connection=Redis(port=6379))
order = int(sys.argv[1])
# What fails, or is killed, is tried three times more.
for job in [queue.enqueue(mail_job, order, retry=Retry(max=3)) for _ in range(2)]:
    while not (job.is_finished or job.is_failed):
        time.sleep(0.1)
    result = job.latest_result()
    assert result is not None
    print(result.return_value or (result.exc_string or "").strip().splitlines()[-1])
