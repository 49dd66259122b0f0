"""What every ledger on a cluster shares: the objects, and the rooms that ask them."""

from __future__ import annotations

from typing import Any

from oncekey.core.clock import SystemClock
from oncekey.stores.restate import request
from oncekey.stores.restate.asking.all import work_objects, work_rooms
from oncekey.stores.restate.census import Counting
from oncekey.stores.restate.claims import Claims
from oncekey.stores.restate.event import event_object, lookback_object
from oncekey.stores.restate.events import RestateEvents, events_service
from oncekey.stores.restate.forward import Forwards, add_forward
from oncekey.stores.restate.keys import add_key_handlers
from oncekey.stores.restate.life import Life
from oncekey.stores.restate.link import Link
from oncekey.stores.restate.listing import Listing
from oncekey.stores.restate.objects import new_object
from oncekey.stores.restate.owners import owners_object
from oncekey.stores.restate.publishing import add_publishing
from oncekey.stores.restate.ringing import bell_objects
from oncekey.stores.restate.rooms.all import row_objects, row_rooms
from oncekey.stores.restate.topic import topic_object


def shared_objects(forwards: Forwards | None = None) -> list[Any]:
    """The first is the one by which others see that somebody serves them. Without `forwards`, only
    to be looked at."""
    requests = new_object(request.SERVICE)
    request.add_handlers(requests)
    add_forward(requests, forwards or Forwards("", SystemClock()))
    add_publishing(requests)
    add_key_handlers(requests)
    return [
        requests,
        owners_object(),
        *work_objects(),
        *row_objects(),
        *bell_objects(),
        topic_object(),
        event_object(),
        lookback_object(),
        events_service(),
    ]


def rooms_of(link: Link, claims: Claims, life: Life) -> list[Any]:
    lists = [Listing(link), Counting(link)]
    return [claims, *row_rooms(link), RestateEvents(link), *lists, *work_rooms(link, life)]
