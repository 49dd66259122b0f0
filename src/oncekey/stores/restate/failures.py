"""What ends with its time, or with the processes that ran it: failures, as JSON."""

LATE = b'{"code":"promise-timed-out","message":"The promise was not settled in time.","status":500}'
OVERDUE = (
    b'{"code":"execution-timed-out","message":"the execution was not over in time","status":500}'
)
LEFT = b'{"code":"processes-ended","message":"every process that ran it has ended","status":500}'
