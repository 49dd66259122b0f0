"""Buys what is named, once, however often it is told to: python buy.py NAME [--die]"""

import os
import signal
import sys

from oncekey.client import Attempted, Client, Retrying

DIES = "--die" in sys.argv


def tell(event: object) -> None:
    match event:
        case Retrying(name, _, _, reason, _):
            print(f"{name}: {reason}, once more")
        case Attempted(_, _, 2) if DIES:
            os.kill(os.getpid(), signal.SIGKILL)


with Client("http://127.0.0.1:8000", intents="intents.db", on_event=tell) as client:
    for intent in client.pending():
        answer = intent.resume()
        print(f"{intent.name}: left over, now {answer and answer.json()}")
    for name in [word for word in sys.argv[1:] if word != "--die"]:
        answer = client.intent(f"buy:{name}").post("/orders", json={"item": name})
        print(f"buy:{name}: {answer.json()}, {answer.source}, replayed: {answer.replayed}")
