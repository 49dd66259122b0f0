"""Whose keys are meant: options for a scope, whole or in part."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import click

from oncekey.cli.options import Command
from oncekey.core.model import Record
from oncekey.core.ports import Query
from oncekey.core.scope import Scope, namespace_of, subject_of


class Whose(NamedTuple):
    """A namespace, when it is known whole, and else the parts that are."""

    namespace: str | None = None
    tenant: str | None = None
    project: str | None = None
    subject: str | None = None
    endpoint: str | None = None

    @property
    def scope(self) -> Scope | None:
        """When it is known whole."""
        if self.namespace is None or self.endpoint is None:
            return None
        return Scope(self.namespace, self.endpoint)

    def narrow(self, query: Query) -> Query:
        """As far as a store can; the rest is for `has`."""
        within = None
        if self.tenant is not None:
            within = f"t-{self.tenant}:" + (f"{self.project}:" if self.project else "")
        return query._replace(namespace=self.namespace, within=within, endpoint=self.endpoint)

    def has(self, record: Record) -> bool:
        namespace, endpoint = record.ref.scope
        if self.endpoint is not None and endpoint != self.endpoint:
            return False
        if self.namespace is not None:
            return namespace == self.namespace
        wanted = (self.tenant, self.project, self.subject)
        actual = namespace.removeprefix("t-").split(":", 2)
        return all(want in {None, have} for want, have in zip(wanted, actual, strict=False))


def scoped(command: Command) -> Command:
    """Give `command` the options that say whose keys are meant, as `whose`."""

    @click.option("--namespace", metavar="NAME", help="Only keys of this namespace, as listed.")
    @click.option("--tenant", help="Only keys of this tenant.")
    @click.option("--project", help="Only keys of this project.")
    @click.option("--subject", metavar="TYPE:ID", help="Only keys of this subject.")
    @click.option("--endpoint", help="Only keys of this endpoint, such as 'POST /orders'.")
    @functools.wraps(command)
    def with_scope(
        namespace: str | None,
        tenant: str | None,
        project: str | None,
        subject: str | None,
        endpoint: str | None,
        **arguments: Any,
    ) -> Any:
        if namespace and (tenant or project or subject):
            raise click.UsageError(
                "--namespace says it all; leave --tenant, --project, --subject out"
            )
        whose = _whose(namespace, tenant, project, subject)._replace(endpoint=endpoint)
        return command(whose=whose, **arguments)

    return with_scope


def _whose(
    namespace: str | None, tenant: str | None, project: str | None, subject: str | None
) -> Whose:
    if tenant and project and subject:
        return Whose(namespace_of(tenant, project, subject))
    # What is wrong is told here; a part that fits nothing would only find nothing.
    namespace_of(tenant or "default", project or "default", subject or "client:anonymous")
    return Whose(namespace, tenant, project, subject_of(subject) if subject else None)
