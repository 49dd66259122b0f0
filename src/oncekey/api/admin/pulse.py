"""How the server has been for the last minutes, over HTTP: what is drawn on the overview."""

from __future__ import annotations

from oncekey.api.admin.noting import means_of
from oncekey.api.endpoint import Call, Endpoint, Reply
from oncekey.durable.shapes import json_of, time_of
from oncekey.observe.pulse import EVERY, Sample
from oncekey.wire.problem import Response
from oncekey.wire.replies import OK, ok


async def show(call: Call) -> Response:
    pulse = means_of(call).pulse
    samples = [] if pulse is None else pulse.samples()
    return ok(json_of({"every_seconds": EVERY, "samples": [_shape_of(each) for each in samples]}))


def _shape_of(sample: Sample) -> dict[str, object]:
    return {**sample._asdict(), "at": time_of(sample.at)}


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/api/admin/pulse",
        show,
        "See the last ten minutes: requests a second by how they ended, and how long they took",
        {OK: Reply("A sample every two seconds, oldest first.", "Pulse")},
        access="admin",
    ),
)
