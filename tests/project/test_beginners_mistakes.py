"""Mistakes of a first hour: each is an error with a place and a way out, before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.errors import TailraceError
from tailrace.project import load
from tailrace.project.check import check

MISTAKES = {
    "a sink without a table": (
        'v = tr.view("v", "SELECT 1 AS a", key="a", to=sinks.Postgres("dbname=x"))',
        "needs table=",
        'table="',
    ),
    "tr.env where plain text is wanted": (
        'e = sources.HTTP("e", listen=tr.env("X", default="127.0.0.1:9"), topics=["t"])',
        "must be text, not",
        'os.environ["X"]',
    ),
    "two edges at one address": (
        'e = sources.HTTP("e", listen="127.0.0.1:9", topics=["t"])\n'
        'f = sources.HTTP("f", listen="localhost:9", topics=["u"])',
        "edge f and edge e both listen on localhost:9",
        "another port",
    ),
    "an edge at the console's address": (
        'e = sources.Webhook("e", listen="127.0.0.1:8080", secret="whsec_eA==")',
        "edge e and the console both listen",
        "another port",
    ),
    "a reaction that takes no fact": (
        'r = tr.reservations("seats")\n@tr.reaction("r", r)\ndef follow(state):\n    yield 1',
        "takes state",
        "def follow(state, fact)",
    ),
    "a database that does not answer": (
        'pg = sources.Postgres("pg", dsn="postgresql://127.0.0.1:1/shop", tables=["a"])',
        "does not answer",
        "dsn",
    ),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("project") / "shop"
    (directory / "pipelines").mkdir(parents=True)
    (directory / "tailrace.toml").write_text('[project]\nname = "shop"\n')
    (directory / "pipelines" / "shop.py").write_text("shop = None\n")
    return directory


def first_error(directory: Path) -> TailraceError:
    def found() -> Iterator[TailraceError]:
        try:
            project = load.load(directory)
            yield from (one.error for one in check(project, connect=True) if one.error is not None)
        except TailraceError as error:
            yield error

    return next(found())


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_has_its_place_and_a_way_out(made: Path, what: str) -> None:
    text, message, hint = MISTAKES[what]
    path = made / "pipelines" / "mistake.py"
    path.write_text(f"import tailrace as tr\nfrom tailrace import sinks, sources\n\n{text}\n")
    error = first_error(made)
    assert message in error.message
    assert hint in error.hint
    assert "pipelines/mistake.py:" in error.detail


def test_files_of_a_project_import_each_other_by_their_folder(made: Path) -> None:
    (made / "pipelines" / "mistake.py").write_text("from shop import shop\n")
    error = first_error(made)
    assert error.hint == "files of a project import each other from their folder: `from pipelines.shop import …`"  # fmt: skip


def test_addresses_of_two_protocols_or_with_a_free_port_do_not_meet(made: Path) -> None:
    (made / "pipelines" / "mistake.py").write_text(
        "from tailrace import sources\n"
        'e = sources.HTTP("e", listen="127.0.0.1:9", topics=["t"])\n'
        'm = sources.StatsD("m", listen="127.0.0.1:9")\n'
        'f = sources.HTTP("f", listen="127.0.0.1:0", topics=["u"])\n'
        'g = sources.HTTP("g", listen="127.0.0.1:0", topics=["v"])\n'
    )
    assert not [one for one in check(load.load(made)) if one.error is not None and "listen" in str(one.error)]  # fmt: skip


def test_streams_and_stored_queries_are_in_the_list(made: Path) -> None:
    (made / "pipelines" / "mistake.py").write_text(
        "import tailrace as tr\n"
        't = tr.topic("t", schema="id INT, x STRING")\n'
        'q = tr.topic("q", schema="id INT, query STRING", key="id")\n'
        'p = tr.percolate("p", t, queries=q, id="id", query="query", text=["x"])\n'
        "@tr.stream(t)\ndef copied(t):\n    return t\n"
    )
    found = {one.what: one.found for one in check(load.load(made))}
    assert found["stream copied"] == "t → copied, in PySpark"
    assert found["percolation p"] == "t against the queries of q"
