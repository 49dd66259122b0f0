"""Chaos: servers under load while everything around them breaks, and a checker that reads it all.

`python -m tests.chaos --help`. The checker is pure: it knows the history and nothing else.
"""
