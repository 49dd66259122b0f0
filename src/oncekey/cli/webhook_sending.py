"""`oncekey webhooks send`: a test delivery, signed as its provider would."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from oncekey.cli.audited import audited
from oncekey.cli.failure import Failure
from oncekey.cli.options import configured
from oncekey.cli.output import print_json
from oncekey.cli.text import escaped, preview_of
from oncekey.cli.webhook_means import Means, checked_id, means_of
from oncekey.compose.address import without_secrets
from oncekey.config import Settings
from oncekey.webhooks.samples import headers_of, sample_of

if TYPE_CHECKING:
    import httpx

    from oncekey.webhooks.delivery import Delivery
    from oncekey.webhooks.sources import Source

_TIMEOUT = 60.0
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


@click.command("send")
@click.argument("webhook_id", metavar="ID", callback=checked_id)
@click.option("--data", help="The body.  [default: the least its provider sends]")
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    help="Where the body is; - reads stdin.",
)
@click.option(
    "--header", "headers", metavar="NAME=VALUE", multiple=True, help="Sent as well; repeatable."
)
@click.option("--to", metavar="URL", help="Where the server is.  [default: as configured]")
@configured
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def send_delivery(
    *,
    settings: Settings,
    webhook_id: str,
    data: str | None,
    file: Path | None,
    headers: tuple[str, ...],
    to: str | None,
    as_json: bool,
) -> None:
    """Sign a test delivery with the webhook's own secret, post it, and print the answer.

    Sent again with the same body, and the header that names it where there is one, it is the same
    delivery: nothing is done twice.

    \b
    Examples:
      oncekey webhooks send wh_k3v5yd7wq2mz4bxr6nt7hjc3ap5s2e
      oncekey webhooks send wh_k3v5yd7wq2mz4bxr6nt7hjc3ap5s2e --data '{"id": "evt_1"}'
      oncekey webhooks send wh_k3v5yd7wq2mz4bxr6nt7hjc3ap5s2e --file event.json \\
        --to https://hooks.example.com --header X-GitHub-Delivery=72d3162e
    """
    if data is not None and file is not None:
        raise click.UsageError("the body is either --data or --file")
    named = [_header_of(each) for each in headers]
    with means_of(settings) as means:
        source = asyncio.run(means.source(webhook_id))
        url = _address_of(source, settings, to)
        delivery = asyncio.run(_signed(means, source, url, named, _body_of(data, file)))
        answer = _post(delivery, url)
        status = answer.status_code
        audited(means.ledger, "webhook.send", webhook_id, tenant=source.tenant, status=status)
    _tell(delivery, answer, as_json=as_json)
    if not answer.is_success:
        raise SystemExit(1)


def _address_of(source: Source, settings: Settings, to: str | None) -> str:
    """Of the webhook, at the server that `to` names: by its root, or with the whole path."""
    from oncekey.cli.webhook_shapes import server_url
    from oncekey.webhooks.naming import path_of

    base = server_url(settings) if to is None else to
    parts = urlsplit(base)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise click.BadParameter(f"{without_secrets(base)!r} is no http(s) URL", param_hint="--to")
    return base if parts.path.strip("/") else base.rstrip("/") + path_of(source)


async def _signed(
    means: Means,
    source: Source,
    url: str,
    headers: list[tuple[bytes, bytes]],
    body: bytes | None,
) -> Delivery:
    """As the server will see it: some providers sign the URL."""
    from oncekey.cli.webhook_shapes import url_of
    from oncekey.webhooks.delivery import Delivery

    secret, *_ = await means.sources.secrets(source)
    public = means.settings.webhooks.public_url
    known_as = url_of(source, means.settings) if public else url
    whole = sample_of(source.provider) if body is None else body
    given = {name for name, _ in headers}
    usual = (each for each in headers_of(source.provider) if each[0] not in given)
    delivery = Delivery(known_as, (*headers, *usual), whole)
    now = means.ledger.clock.now() / 1000
    return means.provider(source.provider).sign(delivery, secret, now)


def _body_of(data: str | None, file: Path | None) -> bytes | None:
    if file is not None:
        return sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    return None if data is None else data.encode()


def _header_of(given: str) -> tuple[bytes, bytes]:
    name, separator, value = given.partition("=")
    if not separator or not _TOKEN.fullmatch(name) or not value.isprintable():
        raise click.BadParameter(f"{given!r} is not NAME=VALUE", param_hint="--header")
    return name.lower().encode(), value.encode()


def _post(delivery: Delivery, url: str) -> httpx.Response:
    try:
        import httpx
    except ImportError as error:
        raise Failure("sending needs httpx; run: pip install 'oncekey[edge]'") from error
    # What is signed may be in the query, too.
    query = urlsplit(delivery.url).query
    try:
        return httpx.post(
            f"{url}?{query}" if query else url,
            content=delivery.body,
            headers=list(delivery.headers),
            timeout=_TIMEOUT,
        )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        reason = str(error) or type(error).__name__
        raise Failure(
            f"{without_secrets(url)} does not answer ({reason}); is `oncekey serve` running there? "
            "--to names another server"
        ) from error


def _tell(delivery: Delivery, answer: httpx.Response, *, as_json: bool) -> None:
    sent = [(name.decode(), value.decode("latin-1")) for name, value in delivery.headers]
    if as_json:
        print_json(
            {
                "sent": {"headers": dict(sent), "body": delivery.body.decode(errors="replace")},
                "status": answer.status_code,
                "headers": dict(answer.headers),
                "body": answer.text,
            }
        )
        return
    lines = [f"> POST {without_secrets(str(answer.request.url))}"]
    lines += [f"> {name}: {value}" for name, value in sent]
    lines += [f"> {line}" for line in preview_of(delivery.body)]
    lines.append(f"< {answer.status_code} {answer.reason_phrase}")
    lines += [f"< {name}: {value}" for name, value in answer.headers.items()]
    for line in [*map(escaped, lines), *preview_of(answer.content)]:
        click.echo(line)
