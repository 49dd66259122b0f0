"""Views of every kind, each with one effect: a charge."""

import json
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.http import (
    FileResponse,
    Http404,
    HttpRequest,
    HttpResponse,
    JsonResponse,
    StreamingHttpResponse,
)
from django.template.response import TemplateResponse
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt

from oncekey import TerminalError
from oncekey.django import idempotent
from tests.django.project.models import Charge


def amount_in(request: Any) -> int:
    is_json = request.content_type == "application/json"
    amount: int = json.loads(request.body).get("amount", 1) if is_json else 1
    return amount


def charge(request: Any) -> Charge:
    return Charge.objects.create(amount=amount_in(request))


def created(made: Charge) -> JsonResponse:
    return JsonResponse({"charge": made.pk, "amount": made.amount}, status=201)


@csrf_exempt
@idempotent
def plain(request: HttpRequest) -> HttpResponse:
    response = created(charge(request))
    response["X-Charge"] = "made"
    response.set_cookie("seen", "yes")
    return response


@csrf_exempt
@idempotent(required=True)
def required(request: HttpRequest) -> HttpResponse:
    return created(charge(request))


@csrf_exempt
@idempotent
def answers(request: HttpRequest, status: int) -> HttpResponse:
    """Charges, then answers whatever the path says."""
    charge(request)
    return HttpResponse(b"answer", status=status, content_type="text/plain")


@csrf_exempt
@idempotent
def raises(request: HttpRequest, kind: str) -> HttpResponse:
    """Charges, then raises."""
    charge(request)
    raise {
        "missing": Http404("no such thing"),
        "forbidden": PermissionDenied(),
        "terminal": TerminalError("the card is stolen", status=402),
        "crash": RuntimeError("a bug"),
    }[kind]


@csrf_exempt
@idempotent(atomic=True)
def exactly_once(request: HttpRequest) -> HttpResponse:
    made = charge(request)
    match request.GET.get("then", ""):
        case "500":
            return HttpResponse(status=500)
        case "missing":
            raise Http404
        case "crash":
            raise RuntimeError("a bug")
        case "terminal":
            raise TerminalError("the card is stolen", status=402)
        case "broken":
            _break_transaction()
    return created(made)


@csrf_exempt
@idempotent(atomic=True, in_flight="attach")
def killed_once(request: HttpRequest) -> HttpResponse:
    """The first time, the process dies after the effect and before the commit."""
    made = charge(request)
    try:
        Path(os.environ["PROJECT_VICTIM"]).unlink()
    except FileNotFoundError:
        return created(made)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


@csrf_exempt
@idempotent
def durable(request: HttpRequest) -> HttpResponse:
    """Insists on a transaction of its own, which no other may surround."""
    with transaction.atomic(durable=True, using=Charge.objects.db):
        return created(charge(request))


def _break_transaction() -> None:
    with suppress(IntegrityError):
        Charge.objects.create(pk=Charge.objects.latest("pk").pk, amount=2)


@csrf_exempt
@idempotent
async def awaited(request: HttpRequest) -> HttpResponse:
    made = await Charge.objects.acreate(amount=amount_in(request))
    if request.GET.get("then") == "crash":
        raise RuntimeError("a bug")
    return created(made)


@method_decorator(csrf_exempt, name="dispatch")
class Methods(View):
    """A method of a class, decorated directly and through Django."""

    @idempotent(required=True)
    def post(self, request: HttpRequest) -> HttpResponse:
        return created(charge(request))

    @method_decorator(idempotent(required=True))
    def put(self, request: HttpRequest) -> HttpResponse:
        return created(charge(request))

    def get(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse("got")


@method_decorator([csrf_exempt, idempotent], name="dispatch")
class Whole(View):
    def post(self, request: HttpRequest) -> HttpResponse:
        return created(charge(request))


@method_decorator([csrf_exempt, idempotent], name="dispatch")
class AwaitedWhole(View):
    async def post(self, request: HttpRequest) -> HttpResponse:
        return created(await Charge.objects.acreate(amount=7))


@csrf_exempt
@idempotent
def template(request: HttpRequest) -> HttpResponse:
    made = charge(request)
    return TemplateResponse(request, "charge.html", {"charge": made}, status=201)


@csrf_exempt
@idempotent
def stream(request: HttpRequest) -> StreamingHttpResponse:
    charge(request)
    return StreamingHttpResponse(iter([b"a", b"b"]), content_type="text/plain")


@csrf_exempt
@idempotent
def file(request: HttpRequest) -> FileResponse:
    charge(request)
    return FileResponse(Path(__file__).open("rb"))


@csrf_exempt
@idempotent(max_stored_body=10)
def large(request: HttpRequest) -> HttpResponse:
    charge(request)
    return HttpResponse(b"x" * 11)


def _events() -> Iterator[bytes]:
    for number in range(3):
        yield b"data: %d\n\n" % number


async def _aevents() -> AsyncIterator[bytes]:
    for event in _events():
        yield event


@csrf_exempt
@idempotent(store_events=True)
def events(request: HttpRequest) -> StreamingHttpResponse:
    charge(request)
    return StreamingHttpResponse(_events(), content_type="text/event-stream")


@csrf_exempt
@idempotent(store_events=True)
async def awaited_events(request: HttpRequest) -> StreamingHttpResponse:
    await Charge.objects.acreate(amount=1)
    return StreamingHttpResponse(_aevents(), content_type="text/event-stream")


@csrf_exempt
@idempotent
def upload(request: HttpRequest) -> HttpResponse:
    given = request.FILES["file"]
    Charge.objects.create(amount=given.size, note=request.POST["note"])
    return JsonResponse({"size": given.size, "note": request.POST["note"]}, status=201)


@idempotent
def checked_form(request: HttpRequest) -> HttpResponse:
    """With Django's own protection against forged forms in front, which reads the form first."""
    Charge.objects.create(amount=int(request.POST["amount"]))
    return HttpResponse(request.POST["amount"], status=201)


@csrf_exempt
def bare(request: HttpRequest) -> HttpResponse:
    """Not decorated: the middleware may protect it."""
    return created(charge(request))


@csrf_exempt
@idempotent
def slow(request: HttpRequest) -> HttpResponse:
    made = charge(request)
    time.sleep(0.05)
    return created(made)


@csrf_exempt
@idempotent(in_flight="attach")
def attached(request: HttpRequest) -> HttpResponse:
    made = charge(request)
    time.sleep(0.05)
    return created(made)
