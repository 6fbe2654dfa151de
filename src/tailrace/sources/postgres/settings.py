"""Sizes and times of capture; the defaults are for production, tests choose small ones."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    """`group_seconds`: how long a transaction waits for others to share its log
    transaction while more arrives; `pace_seconds`: the least time between two of those, so
    that many small transactions share one (a lone one waits for nothing); `part_rows`: the
    most rows of one source transaction in one log transaction; `confirm_delay`: how long after its commit a position is confirmed to the
    server, so that the broker has it on disk; `chunks_ahead`: chunks of a table being read
    or waiting to be written, at least one for each of its connections; `split_rows`: from
    how many rows on a table is read by another connection; `touched_keys`: how many changed
    keys of a table being copied are remembered before those no chunk needs are forgotten."""

    group_seconds: float = 0.004
    pace_seconds: float = 0.025
    group_rows: int = 20_000
    spill_rows: int = 5_000
    part_rows: int = 100_000
    chunk_rows: int = 20_000
    chunks_ahead: int = 3
    split_rows: int = 100_000
    touched_keys: int = 10_000
    idle_cut_seconds: float = 1.0
    confirm_delay: float = 1.5
    look_seconds: float = 2.0
