"""Windows, first rows and filters against the clock → operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailrace.pipelines.errors import NotIncrementalError
from tailrace.pipelines.incremental.sql.plan import Temporal, Top, Window

if TYPE_CHECKING:
    from tailrace.pipelines.incremental.sql.lower import Flow, Lowering


def lower_window(lowering: Lowering, plan: Window, needed: set[str]) -> Flow:
    raise NotIncrementalError("window functions are not kept yet")


def lower_top(lowering: Lowering, plan: Top, needed: set[str]) -> Flow:
    raise NotIncrementalError("LIMIT is not kept yet")


def lower_temporal(lowering: Lowering, plan: Temporal, needed: set[str]) -> Flow:
    raise NotIncrementalError("filters against the clock are not kept yet")
