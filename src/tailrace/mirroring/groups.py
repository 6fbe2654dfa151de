"""Offsets of groups at the source, stored translated at the target.

A group with members at the target, or further there already, is left alone. What is not mirrored
yet waits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tailrace.client.admin import Admin, Place
from tailrace.client.groups import Groups
from tailrace.mirroring.rows import MirrorRows
from tailrace.mirroring.translate import translate


def ahead(
    source: Admin, target: Admin, rows: MirrorRows, pattern: re.Pattern[str]
) -> dict[str, dict[Place, int]]:
    """By group, the offsets at the target that are further than what is stored there."""
    found = {}
    here, there = Groups(source), Groups(target)
    for group in here.every():
        if group.kind == "share" or not pattern.fullmatch(group.name):
            continue
        wanted = translated(rows, here.offsets(group.name))
        if not wanted:
            continue
        known = there.describe(group.name)
        if known is not None and known.members:
            continue
        stored = there.offsets(group.name)
        further = {place: each for place, each in wanted.items() if each > stored.get(place, -1)}
        if further:
            found[group.name] = further
    return found


def translated(rows: MirrorRows, offsets: Mapping[Place, int]) -> dict[Place, int]:
    """What is mirrored of offsets at the source, as offsets at the target."""
    found = {}
    for place, offset in offsets.items():
        position, runs = rows.positions.get(place), rows.runs.get(place)
        if position is None or not runs or offset > position.next:
            continue
        end = runs[-1].target + runs[-1].length  # behind the last record that is there
        found[position.target, place[1]] = translate(runs, offset, end)
    return found
