"""A tick that will take long is told before it runs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tailrace.pipelines.process import runner
from tailrace.pipelines.reading.reader import Range
from tailrace.telemetry.part import Part, read_reports


@pytest.mark.parametrize(("records", "told"), [(300_000, 300_000), (19_999, None)])
def test_a_large_tick_is_reported_before_it_runs(
    records: int, told: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = Part("shop", "pipelines", "shop", "", tmp_path)
    part.report("running")
    seen: list[Any] = []
    monkeypatch.setattr(
        runner, "run_tick_on_spark", lambda *_: seen.append(read_reports(tmp_path)[0])
    )
    half = records // 2
    work = SimpleNamespace(ranges=(Range("a", 0, 5, half + 5), Range("a", 1, 0, records - half)))
    runner._run_tick(part, cast(Any, None), cast(Any, work))
    assert [(report.get("working") or {}).get("records") for report in seen] == [told]
