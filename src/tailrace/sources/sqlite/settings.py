"""Sizes and times of capture from SQLite; tests choose small ones."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SQLiteSettings:
    """Sizes and times; see `tailrace.sources.postgres.settings` for the same words."""

    read_rows: int = 10_000
    part_rows: int = 100_000
    chunk_rows: int = 20_000
    trim_seconds: float = 1.0
    confirm_delay: float = 1.5
