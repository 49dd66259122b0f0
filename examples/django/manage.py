"""A project of Django in one file: its settings, and its commands."""

import sys

from django.conf import settings
from django.core.management import execute_from_command_line

settings.configure(
    ALLOWED_HOSTS=["127.0.0.1"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.db"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "oncekey.django",  # keys are in the database of the project
        "orders",
    ],
    ROOT_URLCONF="orders.urls",
    SECRET_KEY="for this example only",
)

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
