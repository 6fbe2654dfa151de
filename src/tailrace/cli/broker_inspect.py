"""A look into a data directory: reads files, changes nothing, needs no broker."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from tailrace.cli.output import print_json, print_rows
from tailrace.errors import EnvironmentProblem


def inspect_directories(directories: tuple[Path, ...], *, check: bool, as_json: bool) -> bool:
    """Print what is in the data directories; with `check` every batch is read. Whether nothing
    that was read is damaged."""
    partitions: list[dict[str, Any]] = []
    for directory in directories:
        if not (directory / "meta.properties").exists():
            raise EnvironmentProblem(
                f"{directory} is no data directory of a broker",
                hint="give the directory that `tailrace broker start --data` was given",
            )
        partitions += [
            inspect_partition(path, check=check) for path in _partition_directories(directory)
        ]
    partitions.sort(key=lambda row: (row["topic"], row["partition"]))
    good = not any(row["damaged"] for row in partitions)
    if as_json:
        print_json(
            {
                "directories": [str(directory) for directory in directories],
                "stopped_cleanly": all((one / "clean-stop").exists() for one in directories),
                "partitions": partitions,
            }
        )
        return good
    for directory in directories:
        clean = (directory / "clean-stop").exists()
        told = "stopped cleanly" if clean else "in use, or not stopped cleanly"
        click.echo(f"{directory}: {told}")
    click.echo()
    print_rows(
        [
            {
                **row,
                "segments": len(row["segments"]),
                "indexes": _indexes(row),
                "torn": row["torn_bytes"],
                "producers": len(row["producers"]),
                "open": len(row["open_transactions"]),
            }
            for row in partitions
        ],
        ["topic", "partition", "segments", "bytes", "start", "end", "indexes", "torn", "producers",
         "open"],
        as_json=False,
        empty="no topics",
    )  # fmt: skip
    for row in partitions:
        for damage in row["damaged"]:
            click.echo(
                f"damaged: {row['topic']}-{row['partition']} offsets {damage['first_offset']} to "
                f"{damage['last_offset']}, {damage['path']}, bytes {damage['position']} to "
                f"{damage['end_position']}"
            )
    if not good:
        click.echo("hint: restore these files from a copy, or read on behind the ranges")
    return good


def _indexes(row: Mapping[str, Any]) -> str:
    if not row["bytes"]:
        return "none needed"
    return "good" if row["indexes_good"] else "to rebuild"


def _partition_directories(directory: Path) -> Iterator[Path]:
    for path in sorted(directory.iterdir()):
        name, dash, number = path.name.rpartition("-")
        if path.is_dir() and dash and name and number.isdigit():
            yield path


def inspect_partition(path: Path, *, check: bool = False) -> dict[str, Any]:
    """Segments, offsets, index health, torn bytes and producers of one partition; what is
    damaged only if every batch is to be read."""
    from tailrace.log.producers import Producers
    from tailrace.log.recovery import list_directory

    listing = list_directory(path)
    topic, _, index = path.name.rpartition("-")
    segments = []
    end = torn = 0
    good = True
    bases = sorted(listing.segments)
    for place, base in enumerate(bases):
        size = listing.segments[base]
        last = place == len(bases) - 1
        batches, whole, next_offset = (
            _walk(path / f"{base:020d}.log", base) if last else (None, size, bases[place + 1])
        )
        healthy = _index_good(path, base, size)
        good = good and healthy
        torn += size - whole
        end = next_offset
        segments.append(
            {"base_offset": base, "bytes": size, "batches": batches, "index_good": healthy}
        )
    producers = None
    if listing.snapshots:
        snapshot = path / f"{listing.snapshots[-1]:020d}.snapshot"
        producers = Producers.decode(snapshot.read_bytes())
    rows = producers.rows() if producers is not None else []
    return {
        "topic": topic,
        "partition": int(index),
        "segments": segments,
        "bytes": sum(listing.segments.values()),
        "start": bases[0] if bases else 0,
        "end": end,
        "indexes_good": good,
        "torn_bytes": torn,
        "producers": [
            {"id": row.producer_id, "epoch": row.epoch, "last_sequence": row.last_sequence}
            for row in rows
        ],
        "open_transactions": [
            {"producer_id": row.producer_id, "first_offset": row.current_transaction_start}
            for row in rows
            if row.current_transaction_start >= 0
        ],
        "damaged": list(_damage(path, listing.segments)) if check else [],
        "leftovers": listing.leftovers,
    }


def _damage(path: Path, segments: dict[int, int]) -> Iterator[dict[str, Any]]:
    """Ranges in the middle of segments that match no checksum; a torn end is none."""
    from tailrace.log.verification import broken_between

    bases = sorted(segments)
    for place, base in enumerate(bases):
        file = path / f"{base:020d}.log"
        size = segments[base]
        with file.open("rb") as opened:
            for each in broken_between(opened.fileno(), 0, size, size, base):
                last = place == len(bases) - 1
                if each.following < 0 and last:
                    break
                following = each.following if each.following >= 0 else bases[place + 1]
                yield {
                    "path": str(file),
                    "position": each.position,
                    "end_position": each.end_position,
                    "first_offset": each.expected,
                    "last_offset": following - 1,
                }


def _walk(path: Path, base: int) -> tuple[int, int, int]:
    """Whole batches, the bytes they take, and the offset after the last of them."""
    from tailrace.records.batch import iterate_batches
    from tailrace.records.errors import RecordsError

    count, whole, following = 0, 0, base
    if path.stat().st_size == 0:
        return 0, 0, base
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        view = memoryview(data)
        try:
            for position, header in iterate_batches(view):
                count += 1
                whole = position + header.size
                following = header.last_offset + 1
        except RecordsError:
            pass  # what follows the last whole batch is counted as torn
        finally:
            view.release()
    return count, whole, following


def _index_good(path: Path, base: int, size: int) -> bool:
    from tailrace.log.index import OffsetIndex, TimeIndex

    try:
        offsets = OffsetIndex.decode((path / f"{base:020d}.index").read_bytes(), size)
        times = TimeIndex.decode((path / f"{base:020d}.timeindex").read_bytes())
    except FileNotFoundError:
        return False
    return offsets is not None and times is not None
