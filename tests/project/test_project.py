"""Loading a user's folder: declarations, topology, and errors that point at the line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.errors import MissingVariableError
from tailrace.node.errors import UnknownPartError
from tailrace.node.parts import parts_of
from tailrace.node.plan import plan
from tailrace.project import graph, load, scaffold
from tailrace.project.check import check
from tailrace.project.errors import (
    AmbiguousTableError,
    CycleError,
    HistoryNeededError,
    MissingInputError,
    NameClashError,
    ProjectExistsError,
    ProjectMissingError,
    UserFileError,
)

HEAD = "import tailrace as tr\nfrom tailrace import sinks, sources\n"
SHOP = HEAD + 'shop = sources.SQLite("shop", path="x.db", tables=["orders", "customers"])\n'


def project(directory: Path, code: str, **files: str) -> load.Project:
    (directory / "tailrace.toml").write_text('[project]\nname = "p"\n')
    (directory / "pipelines").mkdir(exist_ok=True)
    (directory / "pipelines" / "main.py").write_text(code)
    for name, text in files.items():
        (directory / "pipelines" / name.replace("__", ".")).write_text(text)
    return load.load(directory)


def test_a_scaffold_loads_draws_and_passes_its_own_tests(tmp_path: Path) -> None:
    scaffold.create(tmp_path / "my-shop")
    made = load.load(tmp_path / "my-shop")
    assert made.name == "my-shop"
    topology = graph.build(made)
    assert [part.kind for part in parts_of(made)] == [
        "broker", "source", "pipelines", "views", "sink", "console",
    ]  # fmt: skip
    assert ("shop.main.orders", "open_orders") in topology.edges
    assert "view open_orders" in topology.text()
    assert topology.mermaid().startswith("flowchart LR")
    done = subprocess.run(
        [sys.executable, "-m", "tailrace.cli", "test", "-q", "-p", "no:randomly"],
        cwd=tmp_path / "my-shop", capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_shop_example_loads(checkout: Path) -> None:
    shop = load.load(checkout / "examples" / "shop")
    topology = graph.build(shop)
    assert {"open_orders", "revenue_per_minute"} <= {node.name for node in topology.nodes}


def test_init_never_writes_over_a_file(tmp_path: Path) -> None:
    (tmp_path / "tailrace.toml").write_text("mine")
    with pytest.raises(ProjectExistsError):
        scaffold.create(tmp_path)
    assert (tmp_path / "tailrace.toml").read_text() == "mine"
    assert not (tmp_path / "pipelines").exists()


def test_a_directory_without_a_file_is_no_project(tmp_path: Path) -> None:
    with pytest.raises(ProjectMissingError):
        load.load(tmp_path)


def test_files_may_import_each_other_and_sql_files_are_views(tmp_path: Path) -> None:
    made = project(
        tmp_path,
        "from pipelines.other import shop\n" + HEAD,
        other__py=SHOP,
        open__sql="-- key: id\n-- policy: strict\nSELECT id FROM shop.orders",
    )
    assert list(made.sources) == ["shop"]
    assert made.views["open"].key == ("id",)
    assert made.views["open"].policy == "strict"


def test_an_exception_in_a_users_file_names_file_and_line(tmp_path: Path) -> None:
    with pytest.raises(UserFileError) as caught:
        project(tmp_path, "x = 1\ny = x / 0\n")
    assert "pipelines/main.py:2" in caught.value.detail
    assert "ZeroDivisionError" in caught.value.detail
    with pytest.raises(UserFileError) as caught:
        project(tmp_path, "x = (\n")
    assert "main.py:1" in caught.value.detail


def test_two_declarations_of_one_name_are_refused_with_both_places(tmp_path: Path) -> None:
    view = 'tr.view("v", "SELECT id FROM shop.orders")\n'
    with pytest.raises(NameClashError) as caught:
        project(tmp_path, SHOP + "a = " + view + "b = " + view)
    assert "main.py:4" in caught.value.detail
    assert "main.py:5" in caught.value.detail


def test_a_table_nothing_provides_is_refused_with_the_nearest(tmp_path: Path) -> None:
    made = project(tmp_path, SHOP + 'v = tr.view("v", "SELECT id FROM shop.ordes")\n')
    with pytest.raises(MissingInputError) as caught:
        graph.build(made)
    assert "shop.orders" in caught.value.hint
    assert "main.py:4" in caught.value.detail


def test_a_name_in_two_schemas_is_ambiguous(tmp_path: Path) -> None:
    code = (
        HEAD
        + 'shop = sources.Postgres("shop", dsn="x", tables=["a.orders", "b.orders"])\n'
        + 'v = tr.view("v", "SELECT id FROM shop.orders")\n'
    )
    with pytest.raises(AmbiguousTableError, match=r"a\.orders"):
        graph.build(project(tmp_path, code))


def test_views_that_feed_each_other_are_a_cycle(tmp_path: Path) -> None:
    code = HEAD + 'a = tr.view("a", "SELECT x FROM b")\nb = tr.view("b", "SELECT x FROM a")\n'
    with pytest.raises(CycleError, match=r"a → b → a|b → a → b") as caught:
        graph.build(project(tmp_path, code))
    assert "a is declared at pipelines/main.py:3" in caught.value.detail
    assert "b is declared at pipelines/main.py:4" in caught.value.detail


def test_a_variable_that_is_not_set_is_told_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_DSN", raising=False)
    code = HEAD + 'far = sources.Postgres("far", dsn=tr.env("NO_SUCH_DSN"), tables=["orders"])\n'
    made = project(tmp_path, code)
    told = {one.what: one for one in check(made)}["source far"]
    assert told.error is None  # a machine that checks need not be the one that runs
    assert "NO_SUCH_DSN is not set here" in told.found
    with pytest.raises(MissingVariableError) as caught:
        plan(tmp_path)
    assert "source far, declared at pipelines/main.py:3" in caught.value.detail
    assert [part.kind for part in plan(tmp_path, only=["console"]).parts] == ["broker", "console"]


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("x = (\n", "correct the line"),
        ("import no_such_module\n", "install 'no_such_module'"),
        ("raise SystemExit(3)\n", "must not end the process"),
        ("1 / 0\n", "running database"),
        (
            "from pyspark.sql.functions import udf\n@udf('int')\ndef one(n):\n    return 1\n",
            "type as an object",
        ),
    ],
)
def test_a_file_that_cannot_be_imported_says_the_way_out(
    tmp_path: Path, code: str, hint: str
) -> None:
    with pytest.raises(UserFileError) as caught:
        project(tmp_path, code)
    assert hint in caught.value.hint


def test_inserts_of_a_table_without_history_are_refused(tmp_path: Path) -> None:
    code = SHOP + (
        '@tr.stream(shop.table("orders").inserts())\ndef big(orders):\n    return orders\n'
    )
    with pytest.raises(HistoryNeededError) as caught:
        graph.build(project(tmp_path, code))
    assert "history" in caught.value.hint


def test_only_names_parts_that_exist(tmp_path: Path) -> None:
    made = project(tmp_path, SHOP)
    assert [part.name for part in parts_of(made, ["shop"])] == ["log", "shop", "console"]
    with pytest.raises(UnknownPartError) as caught:
        parts_of(made, ["shp"])
    assert "shop" in caught.value.hint


def test_a_view_is_explained_while_nothing_runs(tmp_path: Path) -> None:
    import sqlite3

    from tailrace.project.explain import draw_view, explain_view

    made = project(tmp_path, SHOP + 'v = tr.view("v", "SELECT count(*) AS n FROM shop.orders")\n')
    connection = sqlite3.connect(tmp_path / "x.db")
    connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    connection.close()
    nobody = "127.0.0.1:1"
    assert "shop.main.orders" in explain_view(made, nobody, "v")
    kinds = [node["kind"] for node in draw_view(made, nobody, "v")["nodes"]]
    assert kinds[0] == "table"
    assert kinds[-1] == "result"


def test_further_outputs_of_a_stream_are_drawn_and_make_no_circle(tmp_path: Path) -> None:
    code = (
        HEAD
        + 'clicks = tr.topic("clicks", schema="n INT")\n'
        + '@tr.stream(clicks, to=[tr.topic("odd", schema="n INT"){extra}])\n'
        + "def split(frame):\n    return frame.where('n % 2 = 0'), frame.where('n % 2 = 1')\n"
        + '@tr.stream(tr.topic("odd", schema="n INT"))\n'
        + "def after(frame):\n    return frame\n"
    )
    topology = graph.build(project(tmp_path, code.format(extra="")))
    assert {("clicks", "split"), ("split", "odd"), ("odd", "after")} <= set(topology.edges)
    with pytest.raises(CycleError):
        graph.build(project(tmp_path, code.format(extra=", clicks")))
