"""Loading a user's folder: declarations, topology, and errors that point at the line."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import tailrace as tr
from tailrace.cli.main import main
from tailrace.errors import MissingVariableError, TailraceError
from tailrace.node.errors import UnknownPartError
from tailrace.node.parts import parts_of
from tailrace.node.plan import plan
from tailrace.pipelines.errors import DeclarationError, UnforeseenError
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


def test_a_file_changed_twice_within_a_second_is_read_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    project(tmp_path, "")
    (tmp_path / "numbers_of_mine.py").write_text("one = 1\n")
    file = tmp_path / "pipelines" / "main.py"

    def topics(number: int) -> list[str]:
        file.write_text(
            "import tailrace as tr\nimport numbers_of_mine\nassert numbers_of_mine.one == 1\n"
            f'clicks = tr.topic("clicks_{number}", schema="id BIGINT")\n'
        )
        os.utime(file, (1_000_000_000, 1_000_000_000))
        return list(load.load(tmp_path).topics)

    assert [topics(1), topics(2)] == [["clicks_1"], ["clicks_2"]]
    assert not list(tmp_path.rglob("*.pyc"))


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
    assert isinstance(told.error, MissingVariableError)
    assert "source far, declared at pipelines/main.py:3" in told.error.detail
    # the machine that checks may not be the one that runs
    assert not any(one.error for one in check(made, connections=False))
    with pytest.raises(MissingVariableError) as caught:
        plan(tmp_path)
    assert "source far, declared at pipelines/main.py:3" in caught.value.detail
    assert [part.kind for part in plan(tmp_path, only=["console"]).parts] == ["broker", "console"]


SINK = 'v = tr.view("v", "SELECT id FROM x GROUP BY id", to={})'


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ('s = sources.Postgres("s", dsn="my secret database", tables=["a"])', "the address of source 's' is malformed"),
        ('s = sources.MySQL("s", dsn=tr.env("SOME_DSN"), tables=["a"])', "no MySQL address"),
        ('s = sources.SQLite("s", "nope.db", tables=["a"])', "the database of source 's' is not there"),
        (SINK.format('sinks.Postgres(tr.env("SOME_DSN"), table="t")'), "the address of sink 'v.postgres' is malformed"),
        (SINK.format('sinks.Redis(tr.env("SOME_DSN"), prefix="p")'), "the address of sink 'v.redis' is malformed"),
        (SINK.format('sinks.Webhook(url=tr.env("SOME_DSN"))'), "the address of sink 'v.webhook' is malformed"),
        (SINK.format('sinks.SQLite("c.db", table="t", columns={"id": "NUMBR"})'), "columns= of sink v.sqlite: 'id'"),
        (SINK.format('sinks.Email(tr.env("SOME_DSN"), to="ann@example.org")'), "the address of sink 'v.email' is malformed"),
    ],
)  # fmt: skip
def test_what_cannot_be_reached_is_an_error_at_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, error: str
) -> None:
    monkeypatch.setenv("SOME_DSN", "a secret that is no address")
    made = project(tmp_path, HEAD + 'x = tr.topic("x", schema="id INT")\n' + code + "\n")
    (wrong,) = [one.error for one in check(made) if one.error]
    assert error in wrong.message
    assert "declared at pipelines/main.py:4" in wrong.detail
    assert "secret" not in wrong.render()
    assert not list(tmp_path.glob("*.db"))


OWNED = """
from dataclasses import dataclass

payments = tr.topic("payments", schema="card BIGINT, at TIMESTAMP")
twice = tr.pattern("twice", payments, key="card", order_by="at", match="a{2}",
    define={"a": "card > 0"}, select={"n": "count(a)"})

@dataclass(frozen=True)
class Paid:
    amount: int

@dataclass(frozen=True)
class Account:
    paid: int = 0

accounts = tr.events("accounts", Paid, state=Account, partitions=1)

@accounts.evolve
def evolve(state: Account, event: Paid) -> Account:
    match event:
        case Paid(amount):
            return Account(state.paid + amount)

@tr.reaction("greet", accounts)
def greet(state, fact):
    return None
"""


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ('to=sinks.Topic("twice")', "what pattern twice finds"),
        ('to=sinks.Topic("accounts")', "the events of accounts"),
        ('to=sinks.Topic("greet.reactions")', "what reaction greet records"),
        ('to=sinks.Topic("_schemas")', "the schemas of the project's registry"),
    ],
)
def test_a_topic_that_the_project_writes_is_no_place_for_copies(
    tmp_path: Path, code: str, why: str
) -> None:
    view = f'v = tr.view("v", "SELECT card FROM payments", {code})\n'
    project(tmp_path, HEAD + OWNED + view)
    with (tmp_path / "tailrace.toml").open("a") as settings:
        settings.write('[registry]\nlisten = "127.0.0.1:8081"\n')
    (wrong,) = [one.error for one in check(load.load(tmp_path)) if one.error]
    assert why in wrong.message


def test_an_edge_does_not_write_among_events(tmp_path: Path) -> None:
    edge = 'edge = sources.HTTP("http", listen="127.0.0.1:0", topics=["accounts"])\n'
    made = project(tmp_path, HEAD + OWNED + edge)
    with pytest.raises(NameClashError) as caught:
        graph.build(made)
    assert "what edge http takes in" in caught.value.detail


def test_a_warning_has_no_tick(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = HEAD + 'x = tr.topic("x", schema="id INT, n INT")\n'
    project(tmp_path, code + 'v = tr.view("v", "SELECT id, n FROM x", key="id")\n')
    with pytest.raises(SystemExit) as leaving:
        main(["check", str(tmp_path)])
    assert leaving.value.code == 0
    shown = capsys.readouterr().out
    assert "! view v: key" in shown
    assert "✓ view v: key" not in shown


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("x = (\n", "correct the line"),
        ("import no_such_module\n", "install 'no_such_module'"),
        ("raise SystemExit(3)\n", "must not end the process"),
        ("1 / 0\n", "running database"),
        ("import tailrace as tr\ntr.sinks.Duckdb\n", "did you mean 'DuckDB'?"),
        ("import tailrace as tr\ntr.topic('a', partition=1)\n", "help(tailrace.topic)"),
        ("import tailrace as tr\ntr.sinks.Redis(prefx='a')\n", "help(tailrace.sinks.Redis)"),
        (
            "import tailrace as tr\ntr.windows.tumbling()\n",
            "help(tailrace.pipelines.declare.windows.tumbling)",
        ),
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


KAFKA = '[log]\nbootstrap = "kafka-1:9092"\n'
ORDERS = "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, status TEXT)"
CUSTOMERS = "CREATE TABLE customers (id INTEGER PRIMARY KEY, country TEXT)"


def mistakes(directory: Path, code: str, **files: str) -> list[TailraceError]:
    """What `tailrace check` finds in a project over a database that is there."""
    with closing(sqlite3.connect(directory / "x.db")) as database:
        database.execute(ORDERS)
        database.execute(CUSTOMERS)
    return [one.error for one in check(project(directory, SHOP + code, **files)) if one.error]


def declared(name: str, sql: str, more: str = "") -> str:
    return f'{name} = tr.view(\n    "{name}",\n    """\n    {sql}\n    """,\n{more})\n'


@pytest.mark.parametrize(
    ("sql", "code", "place"),
    [
        ("SELECT id,, status FROM shop.orders", "sql-syntax", "main.py:7"),
        ("SELECT id FROM shop.orders\n    WHERE (id > 3", "sql-syntax", "main.py:8"),
        ("SELECT id\n    FROM shop.ordes", "missing-input", "main.py:8"),
        ("SELECT id\n    FROM orders", "missing-input", "main.py:8"),
        ("SELECT id,\n    statu FROM shop.orders", "sql-name", "main.py:8"),
        ("SELECT id FROM shop.orders o\n    JOIN shop.customers c ON c.id = o.id", "sql-name", "main.py:7"),
        ("SELECT id FROM shop.orders\n    WHERE id > DATE '2026-01-01'", "sql-type", "main.py:8"),
        ("SELECT substring(id) AS s FROM shop.orders", "sql-type", "main.py:7"),
        ("SELECT id,\n    uuid() AS u FROM shop.orders", "not-incremental", "main.py:8"),
        ("SELECT o.id FROM shop.orders o,\n    shop.customers c", "not-incremental", "main.py:8"),
        ("SELECT o.id FROM shop.orders o JOIN shop.customers\n    FOR SYSTEM_TIME AS OF o.id c ON c.id = o.id", "not-incremental", "main.py:7"),
        ("WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n FROM t) SELECT n FROM t", "not-incremental", "main.py:7"),
    ],
)  # fmt: skip
def test_bad_sql_is_one_error_of_four_parts_that_names_the_line_of_the_file(
    tmp_path: Path, sql: str, code: str, place: str
) -> None:
    (error,) = mistakes(tmp_path, declared("v", sql))
    assert error.code == code
    assert "v" in error.message
    assert "^" in error.detail
    assert error.detail.splitlines()[-1] == f"at pipelines/{place}"
    assert error.hint


@pytest.mark.parametrize(
    ("code", "place"),
    [
        ('v = tr.view("v", "SELECT statu FROM shop.orders")\n', "at pipelines/main.py:4"),
        ('S = """\nSELECT\nstatu FROM shop.orders"""\nv = tr.view("v", S)\n', "at pipelines/main.py:6"),
        ('v = tr.view(\n"v",\n"SELECT id, "\n"statu FROM shop.orders")\n', "declared at pipelines/main.py:4"),
        ('c = "statu"\nv = tr.view("v", f"SELECT {c} FROM shop.orders")\n', "declared at pipelines/main.py:5"),
    ],
)  # fmt: skip
def test_sql_is_found_where_it_is_written_else_where_it_is_declared(
    tmp_path: Path, code: str, place: str
) -> None:
    (error,) = mistakes(tmp_path, code)
    assert error.detail.splitlines()[-1] == place


def test_a_file_of_sql_is_pointed_into_as_well(tmp_path: Path) -> None:
    (error,) = mistakes(tmp_path, "", v__sql="-- key: id\nSELECT id,\nstatu FROM shop.orders\n")
    assert error.detail.splitlines()[-1] == "at pipelines/v.sql:3"


@pytest.mark.parametrize("text", ["-- policy: fast\nSELECT id FROM shop.orders", " \n"])
def test_a_file_of_sql_is_held_to_what_a_declaration_is(tmp_path: Path, text: str) -> None:
    with pytest.raises(DeclarationError, match=r"policy|has no SQL") as caught:
        mistakes(tmp_path, "", v__sql=text)
    assert "v.sql:1" in caught.value.detail


def test_a_mistake_in_a_view_is_not_told_again_for_those_that_read_it(tmp_path: Path) -> None:
    code = declared("a", "SELECT statu FROM shop.orders") + declared("b", "SELECT statu FROM a")
    assert [error.message for error in mistakes(tmp_path, code)] == [
        "view 'a': column 'statu' does not exist"
    ]


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (declared("v", "SELECT id FROM v"), "reads itself"),
        (declared("v", "SELECT id FROM w") + declared("w", "SELECT id FROM v"), "in a circle"),
    ],
)
def test_a_view_that_reads_itself_is_one_error(tmp_path: Path, code: str, told: str) -> None:
    (error,) = mistakes(tmp_path, code)
    assert (error.code, told in error.message, bool(error.hint)) == ("cycle", True, True)


@pytest.mark.parametrize(
    "name",
    [
        "shop.transactions",
        "shop.schemas",
        "shop.main.orders",
        "p.dead",
        "w.copies.dead",
        "W",
        "w.2",
    ],
)
def test_a_view_is_not_named_like_a_topic_that_others_write(tmp_path: Path, name: str) -> None:
    code = (
        'w = tr.view("w", "SELECT id FROM shop.orders",'
        ' to=sinks.SQLite("c.db", table="copies", name="w.copies"))\n'
        f'v = tr.view("{name}", "SELECT id FROM shop.orders")\n'
    )
    (error,) = mistakes(tmp_path, code)
    assert error.code == "name-clash"
    assert "main.py:5" in error.detail


@pytest.mark.parametrize(
    "wrong", ['"v", None', '"v", 5', "None, 'SELECT 1'", "'v', 'SELECT 1 AS a', key=5",
              "'v', 'SELECT 1 AS a', key=[]", "'v', 'SELECT 1 AS a', key=['a', 1]",
              "'v', 'SELECT 1 AS a', indexes=5", "'v', 'SELECT 1 AS a', policy='fast'"],
)  # fmt: skip
def test_a_declaration_of_the_wrong_type_is_told_with_its_place(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        mistakes(tmp_path, f"v = tr.view({wrong})\n")
    assert "main.py:4" in caught.value.detail
    assert caught.value.hint


def test_check_judges_every_view_whatever_is_wrong_with_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tailrace.pipelines.compiler.expressions.calls import RULES

    def raises(*given: object) -> object:
        raise IndexError("list index out of range")

    monkeypatch.setitem(RULES, "soundex", raises)
    code = SHOP.replace("x.db", str(tmp_path / "x.db")) + (
        'bad = tr.view("bad", "SELEC id FROM shop.orders")\n'
        'ignored = tr.view("ignored", "SELECT DISTINCT ON (status) status, id FROM shop.orders")\n'
        'broken = tr.view("broken", """SELECT id,\n  soundex(status) s FROM shop.orders""")\n'
        'typo = tr.view("typo", "SELECT idd FROM shop.orders")\n'
        'good = tr.view("good", "SELECT status, id FROM shop.orders", key="status")\n'
    )
    with closing(sqlite3.connect(tmp_path / "x.db")) as database:
        database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT)")
        database.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY)")
    found = list(check(project(tmp_path, code)))
    errors = {one.what: one.error for one in found if one.error}
    assert {what.split(":")[0].removeprefix("view ") for what in errors} == {
        "bad", "ignored", "broken", "typo",
    }  # fmt: skip
    for error in errors.values():
        assert error.message
        assert error.hint
        assert error.code
        assert "main.py:" in error.detail
    broken = errors["view broken: columns and types"]
    assert "IndexError: list index out of range" in broken.message
    assert isinstance(broken, UnforeseenError)
    assert any(one.what == "view good: key" and not one.error for one in found)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT m.n FROM {t} MATCH_RECOGNIZE (PARTITION BY id MEASURES count(*) AS n PATTERN (A+)) AS m",
        "SELECT 'it''s' AS word, id FROM {t}",
        "SELECT o.id FROM other x JOIN {t} FOR SYSTEM_TIME AS OF x.at o ON o.id = x.id",
        "WITH found AS (SELECT * FROM {t}) SELECT * FROM found",
    ],
)
def test_tables_are_found_in_all_that_views_understand(text: str) -> None:
    view = tr.view("v", text.format(t="shop.orders"))
    assert ("shop", "orders") in graph.tables_of(view)
    assert ("found",) not in graph.tables_of(view)


@pytest.mark.parametrize(
    ("log", "topic", "told"),
    [
        ("", "replication = 1", "1 settings; one copy: it is lost with its disk"),
        ("", "replication = 3", "the embedded log keeps one copy"),
        ("", '"min.insync.replicas" = 2', "the embedded log keeps one copy"),
        ("", '"min.insync.replicas" = "many"', "min.insync.replicas"),
        (
            KAFKA,
            'replication = 3\n"min.insync.replicas" = 2',
            "3 copies, 2 must have a record: what is acknowledged survives 1 broker",
        ),
        (
            KAFKA,
            'replication = 2\n"unclean.leader.election.enable" = true',
            "an unclean election may lose it all the same",
        ),
        (KAFKA, '"min.insync.replicas" = 2', "set replication to have it told"),
        (KAFKA, '"min.insync.replica" = 2', "min.insync.replica"),
    ],
)
def test_what_a_topic_survives_is_told_before_it_is_made(
    tmp_path: Path, log: str, topic: str, told: str
) -> None:
    (tmp_path / "tailrace.toml").write_text(
        f'[project]\nname = "x"\n{log}[topics.orders]\n{topic}\n'
    )
    found = next(
        one for one in check(load.load(tmp_path), connections=False) if one.what == "topic orders"
    )
    assert told in (found.error.render() if found.error else found.found)
