"""What REST framework does around a handler. Nothing of it is imported: it may not be installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def view_of(request: Any) -> Any:
    """The view behind a request of REST framework; None for Django's own requests."""
    if not hasattr(request, "_request"):
        return None
    return request.parser_context.get("view")


def finished(view: Any, request: Any, handler: Callable[[], Any]) -> Any:
    """The answer as the caller will get it: errors turned into answers, negotiated and rendered."""
    try:
        response = handler()
    except Exception as error:  # noqa: BLE001 - the view raises again what it cannot answer
        response = _answer_to(view, error)
    response = view.finalize_response(request, response, *view.args, **view.kwargs)
    if not getattr(response, "is_rendered", True):
        response.render()
    return response


def was_refused(error: BaseException) -> bool:
    """Whether the view was asked already and has no answer to this error."""
    return bool(getattr(error, "oncekey_refused", False))


def _answer_to(view: Any, error: Exception) -> Any:
    try:
        return view.handle_exception(error)
    except Exception as unanswered:
        unanswered.oncekey_refused = True  # type: ignore[attr-defined]
        raise
