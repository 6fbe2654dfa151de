"""Fixtures that `pytest` gets from the installed package."""

from __future__ import annotations
