"""What ends with its time: the failures of promises and executions that were late, as JSON."""

LATE = b'{"code":"promise-timed-out","message":"The promise was not settled in time.","status":500}'
OVERDUE = (
    b'{"code":"execution-timed-out","message":"the execution was not over in time","status":500}'
)
