"""Durable work, API keys and schedules; no model reads them."""

from typing import Any, ClassVar

from django.db import migrations

from oncekey.integrations.django.tables import MigrateLedger


class Migration(migrations.Migration):
    dependencies: ClassVar[list[Any]] = [("oncekey", "0001_ledger")]
    operations: ClassVar[list[Any]] = [MigrateLedger(2)]
