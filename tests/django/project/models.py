"""The effect that must happen once."""

from django.db import models


class Charge(models.Model):
    amount = models.IntegerField()
    note = models.TextField(default="")

    class Meta:
        app_label = "project"
