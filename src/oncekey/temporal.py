"""Temporal: `Activities`, which are completed when promises are settled."""

from oncekey.integrations.temporal import Activities

__all__ = ["Activities"]
