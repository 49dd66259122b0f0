"""Claims and outcomes, with what the ledger needs beside them."""

from typing import Any, ClassVar

import django.db.models.deletion
from django.db import migrations, models

from oncekey.integrations.django.tables import MigrateLedger

_CLAIMS = migrations.CreateModel(
    name="IdempotencyKey",
    fields=[
        ("id", models.BigIntegerField(primary_key=True, serialize=False)),
        ("digest", models.BinaryField()),
        ("namespace", models.TextField(verbose_name="organization")),
        ("endpoint", models.TextField()),
        ("key", models.TextField()),
        ("fingerprint", models.BinaryField()),
        ("owner", models.BigIntegerField()),
        ("fence", models.BigIntegerField(verbose_name="attempts")),
        ("request_id", models.TextField()),
        ("retention", models.TextField()),
        ("created_at", models.BigIntegerField()),
        ("expires_at", models.BigIntegerField()),
        ("workflow_id", models.TextField(null=True)),
        ("task_id", models.TextField(null=True)),
        ("promise_id", models.TextField(null=True)),
    ],
    options={
        "db_table": "oncekey_claims",
        "default_permissions": ("view", "delete"),
        "ordering": ["-id"],
        "verbose_name": "idempotency key",
    },
)

_OUTCOMES = migrations.CreateModel(
    name="IdempotencyOutcome",
    fields=[
        (
            "claim",
            models.OneToOneField(
                db_column="id",
                db_constraint=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                primary_key=True,
                related_name="settled",
                serialize=False,
                to="oncekey.idempotencykey",
            ),
        ),
        ("fence", models.BigIntegerField()),
        ("kind", models.SmallIntegerField()),
        ("status", models.IntegerField()),
        ("headers", models.BinaryField()),
        ("body", models.BinaryField()),
        ("completed_at", models.BigIntegerField()),
        ("expires_at", models.BigIntegerField()),
    ],
    options={"db_table": "oncekey_outcomes", "default_permissions": ()},
)


class Migration(migrations.Migration):
    initial = True
    dependencies: ClassVar[list[Any]] = []
    operations: ClassVar[list[Any]] = [
        migrations.SeparateDatabaseAndState(
            database_operations=[MigrateLedger(1)], state_operations=[_CLAIMS, _OUTCOMES]
        )
    ]
