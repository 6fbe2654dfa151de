"""Keyed copies of changelog topics: look up, ask in SQL, subscribe, wait for a position."""
