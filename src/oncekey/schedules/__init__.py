"""Schedules: ticks by cron or interval, each with a key of its own and one effect."""

from oncekey.schedules.missed import Missed
from oncekey.schedules.schedule import CallUrl, Schedule, StartWorkflow
from oncekey.schedules.scheduler import Ran, Scheduler
from oncekey.schedules.signing import verify_signature
from oncekey.schedules.timing import Cron, Every

__all__ = [
    "CallUrl",
    "Cron",
    "Every",
    "Missed",
    "Ran",
    "Schedule",
    "Scheduler",
    "StartWorkflow",
    "verify_signature",
]
