"""Rooms: what a process asks, put to the objects that keep it."""
