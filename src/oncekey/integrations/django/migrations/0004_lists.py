"""What operators look at: indexes and a view; no model reads them."""

from typing import Any, ClassVar

from django.db import migrations

from oncekey.integrations.django.tables import MigrateLedger


class Migration(migrations.Migration):
    dependencies: ClassVar[list[Any]] = [("oncekey", "0003_webhooks")]
    operations: ClassVar[list[Any]] = [MigrateLedger(4)]
