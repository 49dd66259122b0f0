"""The app of the project; its table is made without migrations."""

from django.apps import AppConfig


class ProjectConfig(AppConfig):
    name = "tests.django.project"
    label = "project"
