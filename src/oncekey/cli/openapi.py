"""`oncekey openapi`: what the edge promises, for whoever generates a client or reads it."""

from __future__ import annotations

import json
from typing import Any

import click

from oncekey.cli.documents import read_document, yaml_of
from oncekey.cli.failure import Failure
from oncekey.cli.options import configured
from oncekey.cli.text import escaped
from oncekey.config import Settings


@click.command("openapi")
@click.option("--upstream", metavar="NAME", help="Only the routes that go to this upstream.")
@click.option("--document", metavar="FILE|URL", help="Annotate this OpenAPI document instead.")
@click.option("--yaml", "as_yaml", is_flag=True, help="Print YAML in place of JSON.")
@configured
def openapi(
    settings: Settings, upstream: str | None, document: str | None, *, as_yaml: bool
) -> None:
    """Print the edge's OpenAPI document, or annotate a service's own.

    Every route is told with its policy, how long answers are kept, the Idempotency-Key where it has
    one, the problems there can be and the headers of a replay. With --document, the operations that
    a route covers get the same added, and nothing else changes; those that no route covers are
    listed on stderr.

    \b
    Examples:
      oncekey openapi > edge.json
      oncekey openapi --upstream orders --document orders.json
      oncekey openapi --document http://127.0.0.1:9000/openapi.json --yaml
    """
    if document is None and upstream is not None:
        raise click.UsageError("--upstream says whose document it is; name that with --document")
    try:
        made = _own(settings) if document is None else _annotated(settings, document, upstream)
    except ModuleNotFoundError as error:
        raise Failure(f"{error}; the edge needs it: pip install 'oncekey[edge]'") from error
    click.echo(yaml_of(made) if as_yaml else json.dumps(made, indent=2), nl=not as_yaml)


def _own(settings: Settings) -> Any:
    from oncekey.compose.openapi import document_for

    return document_for(settings)


def _annotated(settings: Settings, place: str, upstream: str | None) -> Any:
    from oncekey.compose.openapi import annotated_for

    annotated, uncovered = annotated_for(settings, read_document(place), upstream)
    for each in uncovered:
        click.echo(f"no route covers {escaped(each)}", err=True)
    return annotated
