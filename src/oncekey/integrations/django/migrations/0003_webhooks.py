"""Webhooks, deliveries, audit and the role of API keys; no model reads them."""

from typing import Any, ClassVar

from django.db import migrations

from oncekey.integrations.django.tables import MigrateLedger


class Migration(migrations.Migration):
    dependencies: ClassVar[list[Any]] = [("oncekey", "0002_durable")]
    operations: ClassVar[list[Any]] = [MigrateLedger(3)]
