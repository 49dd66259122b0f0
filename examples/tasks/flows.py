"""Mails as tasks: queued, tried again, two at a time, and one for each key."""

from pathlib import Path

from oncekey import App, Retry, TerminalError

flows = App()


@flows.task(retry=Retry(attempts=5, initial=0.1), concurrency=2)
def send_mail(to: str) -> str:
    if "@" not in to:
        raise TerminalError(f"{to} is no address")  # for good: no attempt would mend it
    with Path("attempts.txt").open("a") as attempts:
        print(to, file=attempts)
    if Path("attempts.txt").read_text().count(to) < 3:
        raise ConnectionError("the mail server does not answer")
    return f"mail to {to} is sent"
