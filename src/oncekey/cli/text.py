"""Text that came from outside, made fit for a terminal: it can be read, and it cannot act."""

from __future__ import annotations

from datetime import datetime

_PREVIEW_BYTES = 2000
_HEX_BYTES = 256


def escaped(text: str) -> str:
    """`text` with everything unprintable written out: no stored byte may drive the terminal."""
    return "".join(char if char.isprintable() else _written_out(char) for char in text)


def preview_of(body: bytes) -> list[str]:
    """The first lines of a body; bytes that are no text are shown as numbers."""
    head = body[:_PREVIEW_BYTES]
    text = _text_in(head, cut=len(head) < len(body))
    if text is None:
        head = body[:_HEX_BYTES]
        lines = [head[at : at + 32].hex(" ") for at in range(0, len(head), 32)]
    else:
        lines = [escaped(line) for line in text.split("\n")]
    left = len(body) - len(head)
    return [*lines, f"… and {left} bytes more"] if left else lines


def shortened(body: bytes, limit: int = 200) -> str:
    """The beginning of a value, on one line; not yet escaped."""
    text = body[: 4 * limit].decode(errors="replace")
    return text if len(text) <= limit and len(body) <= 4 * limit else f"{text[: limit - 1]}…"


def _text_in(head: bytes, *, cut: bool) -> str | None:
    try:
        return head.decode()
    except UnicodeDecodeError as error:
        # A character that is cut in two at the end is not the body's fault.
        if cut and error.start > len(head) - 4:
            return head[: error.start].decode()
        return None


def moment(milliseconds: int | None, *, zone: bool = False) -> str:
    """A time as people here read it."""
    if milliseconds is None:
        return ""
    form = "%Y-%m-%d %H:%M:%S %z" if zone else "%Y-%m-%d %H:%M:%S"
    return datetime.fromtimestamp(milliseconds / 1000).astimezone().strftime(form)


def _written_out(char: str) -> str:
    return char.encode("unicode_escape").decode()
