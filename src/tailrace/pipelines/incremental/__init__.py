"""Views kept incrementally: SQL compiled into operators that follow the change.

    parse → bind → decorrelate → prune → lower → graph → execute

`compile_views` turns the SQL of a project's views into one `Graph`; `run_tick` applies one
tick's changes to it. Nothing here imports pyspark: the graph is plain data, and Spark only
carries it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tailrace.pipelines.incremental.compile import compile_views

__all__ = ["compile_views"]


def __getattr__(name: str) -> object:
    # Workers run operators and never compile: they should not load the SQL parser.
    if name == "compile_views":
        from tailrace.pipelines.incremental.compile import compile_views

        return compile_views
    raise AttributeError(name)
