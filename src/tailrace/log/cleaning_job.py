"""What the loop asks of a cleaner, and what the cleaner answers; both travel as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field

import orjson


@dataclass(frozen=True, slots=True)
class CleaningJob:
    """What the loop asks for."""

    directory: str
    segments: list[list[int]]
    """[base offset, size] of the sealed segments that may be cleaned, in order."""
    first_dirty: int
    """Where the last cleaning stopped."""
    end: int
    """Base offset of the first segment that must stay as it is."""
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    index_interval_bytes: int
    map_bytes: int
    bytes_per_second: float
    aborted: list[list[int]]
    """[producer id, first offset, marker's offset] of aborted transactions."""
    producers: dict[str, list[int]]
    """Producer id → [offset of its last data batch's end or −1, epoch]: those batches stay."""
    erased: list[list[int]] = field(default_factory=list)
    """[first, last] offsets of records to be erased: see `eraser`."""
    elsewhere: dict[str, str] = field(default_factory=dict)
    """Base offset → path of segments that are not in the directory."""


@dataclass(slots=True)
class CleanedGroup:
    """One new segment and the old ones it stands for."""

    old: list[int]
    base: int
    size: int


@dataclass(slots=True)
class CleaningResult:
    """What the child found and left."""

    cleaned_to: int
    groups: list[CleanedGroup] = field(default_factory=list)
    keys: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_kept: int = 0
    damage: list[str | int] = field(default_factory=list)
    """[path, position, what is wrong] of a broken batch that stopped the cleaning."""
    failure: str = ""
    """Why the cleaning stopped early; `groups` are those that were finished before."""

    @classmethod
    def from_json(cls, data: bytes) -> CleaningResult:
        value = orjson.loads(data)
        value["groups"] = [CleanedGroup(**each) for each in value["groups"]]
        return cls(**value)
