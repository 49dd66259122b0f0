"""The admin page: look at keys and purge them. Everything stored is shown escaped and cut."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.utils.html import format_html

from oncekey.core.errors import OnceKeyError
from oncekey.core.model import Kind, State
from oncekey.integrations.django.models import IdempotencyKey

_SHOWN = 4096
_FAILED = Q(settled__kind=int(Kind.ERROR)) | Q(settled__status__gte=400)
_STATES = {
    "in_progress": Q(settled__isnull=True),
    "succeeded": Q(settled__isnull=False) & ~_FAILED,
    "failed": Q(settled__isnull=False) & _FAILED,
}


class StateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name.replace("_", " ")) for name in _STATES]

    def queryset(self, request: Any, queryset: QuerySet) -> QuerySet:
        chosen = _STATES.get(self.value())
        return queryset if chosen is None else queryset.filter(chosen)


@admin.register(IdempotencyKey)
class IdempotencyKeyAdmin(admin.ModelAdmin):
    list_display = ("key", "namespace", "endpoint", "state_shown", "created", "expires", "attempts")
    list_filter = (StateFilter,)
    list_select_related = ("settled",)
    search_fields = ("key__startswith",)
    search_help_text = "The beginning of a key"
    ordering = ("-id",)
    actions = ("purge",)
    # Counting millions of rows would make the page wait.
    show_full_result_count = False
    fieldsets: ClassVar = [
        (None, {"fields": ("key", "namespace", "endpoint", "operation_id", "request_id")}),
        ("Life", {"fields": ("state_shown", "attempts", "created", "expires", "retention")}),
        ("Outcome", {"fields": ("completed", "status", "headers", "body")}),
    ]

    def has_add_permission(self, request: Any) -> bool:
        return False

    def has_change_permission(self, request: Any, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: Any, obj: Any = None) -> bool:
        return False

    def has_purge_permission(self, request: Any) -> bool:
        return bool(request.user.has_perm("oncekey.delete_idempotencykey"))

    @admin.action(description="Purge: the next request with this key runs", permissions=["purge"])
    def purge(self, request: Any, queryset: QuerySet) -> None:
        try:
            chosen = list(queryset)
            purged = sum(key.purge() for key in chosen)
        except OnceKeyError as error:
            self.message_user(request, str(error), messages.ERROR)
            return
        for key in chosen:
            self.log_change(request, key, "Purged.")
        noun = "key" if purged == 1 else "keys"
        self.message_user(request, f"{purged} {noun} purged.", messages.SUCCESS)

    @admin.display(description="state", ordering="settled__status")
    def state_shown(self, key: IdempotencyKey) -> str:
        return State(key.state).name.lower().replace("_", " ")

    @admin.display
    def completed(self, key: IdempotencyKey) -> Any:
        return key.outcome.completed if key.outcome else None

    @admin.display
    def status(self, key: IdempotencyKey) -> Any:
        return key.outcome.status if key.outcome else None

    @admin.display
    def headers(self, key: IdempotencyKey) -> Any:
        if not key.outcome:
            return None
        lines = [f"{name}: {value}" for name, value in key.outcome.header_lines]
        return _shown("\n".join(lines).encode())

    @admin.display
    def body(self, key: IdempotencyKey) -> Any:
        return _shown(bytes(key.outcome.body)) if key.outcome else None


def _shown(content: bytes) -> str:
    """Text as it is, anything else in hexadecimal; never more than a page of it."""
    head = content[:_SHOWN]
    try:
        # The cut may fall inside a character.
        text = head.decode("utf-8", "strict" if len(head) == len(content) else "ignore")
    except UnicodeDecodeError:
        text = head.hex(" ", 2)
    rest = len(content) - len(head)
    more = f"\n… {rest} bytes more" if rest else ""
    shown: str = format_html("<pre>{}{}</pre>", text, more)
    return shown
