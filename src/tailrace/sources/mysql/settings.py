"""Sizes and times of capture from MySQL and MariaDB; tests choose small ones."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MySQLSettings:
    """See `tailrace.sources.postgres.settings` for the same words. `spill_bytes`: how much of
    a transaction is kept until its commit is known; what is larger is written as it comes.
    `lost_rows`: the most keys that are read again one by one, not by comparing the table."""

    group_seconds: float = 0.004
    pace_seconds: float = 0.012
    group_rows: int = 20_000
    spill_rows: int = 5_000
    spill_bytes: int = 4 << 20
    part_rows: int = 100_000
    chunk_rows: int = 20_000
    chunks_ahead: int = 3
    touched_keys: int = 10_000
    idle_cut_seconds: float = 0.25
    look_seconds: float = 2.0
    heartbeat_seconds: float = 1.0
    silence_seconds: float = 30.0
    lost_rows: int = 10_000
