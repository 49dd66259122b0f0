"""Schedules: ticks by cron or interval, each with a key of its own and one effect."""
