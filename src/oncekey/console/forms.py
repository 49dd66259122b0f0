"""A form that was sent: what is in it, and the same form again when it could not be done."""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request

from oncekey.console.fields import Unreadable
from oncekey.console.visit import Form, Page, Place, Refused, Visit
from oncekey.console.wording import size_of

LARGEST_FORM = 1 << 20
_MOST_FIELDS = 100

_TOO_LARGE = f"Nothing was done. A form has {size_of(LARGEST_FORM)} at most."
_NOTHING = "Nothing was done."
_IN_DOUBT = "Whether it was done is not known. {} It is done once, and you are told how it ended."
_SEND_AGAIN = _IN_DOUBT.format("It is safe to send this form again as it is.")
_LOAD_AGAIN = _IN_DOUBT.format("It is safe to load this page again, which sends the same form.")
_SENT_BEFORE = (
    "Nothing was done now; what was sent before with this form was done, or is being done. Look "
    "before you send another."
)
_KEY_REUSED = 422


async def form_in(request: Request) -> dict[str, str]:
    """The fields of a form; nothing of one of another kind. Raises `Refused` for a large one."""
    if request.headers.get("content-type", "").split(";")[0] != "application/x-www-form-urlencoded":
        return {}
    content = b""
    try:
        async for piece in request.stream():
            content += piece
            if len(content) > LARGEST_FORM:
                raise Refused(413, "This form is too large", _TOO_LARGE)
    except ClientDisconnect:
        # Anybody can leave in the middle of one, and that is worth no trace in the log.
        raise Refused(400, "This form has no end", _NOTHING) from None
    try:
        pairs = parse_qsl(content.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        return {}
    # What a browser calls the end of a line.
    return {name: value.replace("\r\n", "\n") for name, value in pairs}


async def asked_again(
    place: Place, visit: Visit, form: Form, problem: Refused | Unreadable
) -> Page:
    """The same form once more, with what was written into it. While it is in doubt whether it was
    done, it also keeps its key: whoever sends it again does not act twice."""
    try:
        page = await place.show(visit)
    except Refused:
        if not (isinstance(problem, Refused) and problem.in_doubt):
            raise
        # What the form is about may be gone because it was done.
        again = Refused(problem.status, problem.title, _LOAD_AGAIN)
        return Page("refused.html", {"problem": again}, again.status)
    values = {
        **page.values,
        "problem": problem,
        "standing": _standing_after(problem),
        "given": form,
        "kept_key": form.get("key", "") if problem.in_doubt else "",
    }
    return Page(page.template, values, problem.status)


def _standing_after(problem: Refused | Unreadable) -> str:
    if problem.in_doubt:
        return _SEND_AGAIN
    return _SENT_BEFORE if problem.status == _KEY_REUSED else _NOTHING
