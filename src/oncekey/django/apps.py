"""The app: its models, migrations, command and admin page live in `oncekey.integrations.django`."""

from django.apps import AppConfig

from oncekey.compose import open_ledger
from oncekey.integrations.django.ledgers import Ledgers


class OnceKeyConfig(AppConfig):
    name = "oncekey.integrations.django"
    label = "oncekey"
    verbose_name = "OnceKey"

    def ready(self) -> None:
        from oncekey.integrations.django import checks, signals

        self.ledgers = Ledgers(open_ledger)
        checks.register()
        signals.connect(self, self.ledgers)
